// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/reshard_planner.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/reshard/across_meshes.h"
#include "shardwise/reshard/plan.h"
#include "shardwise/reshard/plan_cache.h"
#include "shardwise/reshard/price_cache.h"

namespace shardwise {

size_t ReshardPlanner::KeyHash::operator()(const Key& key) const {
  return hash_combine(hash_combine(key.type.index, key.from.index), key.to.index);
}

ReshardPlanner::ReshardPlanner(Context& context, const CompileOptions& options)
    : context_(context), hardware_(options.is_by_bytes() ? nullptr : hardware_called(options.hardware)) {}

const ReshardPlan& ReshardPlanner::plan(TypeId type, PlacementId from, PlacementId to) {
  static const ReshardPlan kNone;
  if (from == to) return kNone;  // ids are unique per placement
  std::shared_ptr<const ReshardPlan>& kept = plans_[{type, from, to}];
  if (kept != nullptr) return *kept;
  PlanCache::Found found = plans_of_process().plan(problem(type, from, to), hardware_);
  count(found.is_new);
  kept = std::move(found.plan);
  return *kept;
}

ReshardPrice ReshardPlanner::price(TypeId type, PlacementId from, PlacementId to, const HardwarePtr& hardware) {
  if (from == to) return {};
  const PriceCache::Found found = prices_of_process().price(problem(type, from, to), hardware_, hardware);
  count(found.is_new);
  return found.price;
}

void ReshardPlanner::count(bool is_new) {
  ++plans_made_;
  new_plans_ += is_new ? 1 : 0;
}

std::optional<ReshardPlan> ReshardPlanner::plan_with_moves(TypeId type, PlacementId from, PlacementId to,
                                                           std::span<const std::string> moves) const {
  if (from == to) return moves.empty() ? std::optional(ReshardPlan()) : std::nullopt;
  return shardwise::plan_with_moves(problem(type, from, to), moves);
}

ReshardProblem ReshardPlanner::problem(TypeId type, PlacementId from, PlacementId to) const {
  const TensorType& tensor = context_.type(type);
  const Placement& source = context_.placement(from);
  const Placement& target = context_.placement(to);
  if (source.mesh != target.mesh && !source.mesh->same_devices(*target.mesh) &&
      !are_over_same_devices(*source.mesh, *target.mesh)) {
    fail<ShardingError>("reshard", "both shardings must be of meshes over the same devices",
                        str(source.mesh->reference(), " ", source.mesh->text(), " and ", target.mesh->reference(), " ",
                            target.mesh->text()),
                        "give both as many devices, or use one of them");
  }
  // A replicated side takes the mesh of the other one, so that most pairs of meshes need no exchange across them.
  ReshardProblem problem{.shape = tensor.shape, .item_size = item_size(tensor.dtype), .from = source, .to = target};
  // Owned elements move like addends, so that both have the same plans.
  problem.from.is_owned = problem.to.is_owned = false;
  return with_common_mesh(std::move(problem));
}

}  // namespace shardwise
