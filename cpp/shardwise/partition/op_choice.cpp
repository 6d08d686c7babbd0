// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/op_choice.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/emission/working_mesh.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

std::string choice_text(const ChosenOp& choice) {
  std::string text = choice.method.empty() ? choice.op : str(choice.op, " by ", choice.method);
  for (const std::string& operand : choice.operands) text += " " + operand;
  text += " ->";
  for (const std::string& result : choice.results) text += " " + result;
  return text;
}

}  // namespace

// The criteria for candidates, most important first. A later reduction may be combined with others.
struct OpChooser::Price {
  double bytes = 0;
  bool reduces_early = false;
  double work = 0;
  int reshards = 0;
  friend bool operator<(const Price& a, const Price& b) {
    return std::tie(a.bytes, a.reduces_early, a.work, a.reshards) <
           std::tie(b.bytes, b.reduces_early, b.work, b.reshards);
  }
};

Pending OpChooser::add_candidates(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings) {
  Pending pending = pending_at_home(op, rule);
  std::vector<PlacementId> declared, current;
  for (const ValueId operand : op.operands()) {
    declared.push_back(placements_.declared(operand));
    current.push_back(values_.home(operand, declared.back()));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    declared.push_back(wanted(op, i));
    current.push_back(declared.back());
  }
  std::vector<MeshPtr> meshes{nullptr};
  if (placements_.has_several_meshes()) meshes = meshes_of(declared, current);
  for (const MeshPtr& mesh : meshes) {
    shardings.set_mesh(mesh);
    // The operands where propagation has them, their pending reductions completed.
    add_projected(declared, mesh, rule, shardings);
    // Computing where the operands currently are may save a reshard.
    if (current != declared) add_projected(current, mesh, rule, shardings);
    // A reduction stays pending only on the mesh of its axes.
    if (pending.axes.empty() || (mesh != nullptr && mesh != pending.mesh)) continue;
    shardings.add(projection_, tensors_, pending.axes, pending.reducer);
  }
  return pending;
}

void OpChooser::add_projected(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule,
                              ComputeShardings& shardings) {
  tensors_.clear();
  for (const PlacementId id : tensors) {
    const Placement* placement = placements_.find(id);
    const bool is_elsewhere = mesh != nullptr && placement != nullptr && placement->mesh != mesh;
    tensors_.push_back(is_elsewhere ? nullptr : placement);
  }
  projection_.project(rule, tensors_);
  shardings.add(projection_, tensors_, {}, Reducer::kNone);
}

// The meshes on which the op may be computed: those of its operands and results, first that of the program.
std::vector<MeshPtr> OpChooser::meshes_of(std::span<const PlacementId> declared,
                                          std::span<const PlacementId> current) const {
  std::vector<MeshPtr> meshes{placements_.mesh()};
  const auto add = [&](PlacementId id) {
    const Placement* placement = placements_.find(id);
    if (placement == nullptr || placement->is_fully_replicated()) return;
    if (std::ranges::find(meshes, placement->mesh) == meshes.end()) meshes.push_back(placement->mesh);
  };
  for (size_t t = 0; t < declared.size(); ++t) {
    add(declared[t]);
    add(current[t]);
  }
  return meshes;
}

OpChoice OpChooser::choose(const OpView& op, const ShardingRule& rule) {
  const ChosenOp* pinned = choices_.next_pinned(op.name());
  OpChoice choice = pinned == nullptr ? cheapest(op, rule) : choose_pinned(op, rule, *pinned);
  choices_.add(described(op, rule, choice));
  return choice;
}

OpChoice OpChooser::cheapest(const OpView& op, const ShardingRule& rule) {
  ComputeShardings shardings(op, rule);
  Pending pending = add_candidates(op, rule, shardings);
  const ComputeSharding* best = &shardings.candidates()[0];
  if (shardings.candidates().size() > 1) {
    Price best_price = price(op, rule, *best, pending);
    for (const ComputeSharding& candidate : std::span(shardings.candidates()).subspan(1)) {
      const Price candidate_price = price(op, rule, candidate, pending);
      // The first of equal candidates stays, so that the choice does not depend on more than their order.
      if (!(candidate_price < best_price)) continue;
      best = &candidate;
      best_price = candidate_price;
    }
  }
  return {*best, std::move(pending)};
}

OpChoice OpChooser::choose_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned) {
  ComputeShardings shardings(op, rule);
  const Pending pending = add_candidates(op, rule, shardings);
  size_t tried = 0;
  const auto find = [&]() -> const ComputeSharding* {
    for (; tried < shardings.candidates().size(); ++tried) {
      const ComputeSharding& candidate = shardings.candidates()[tried];
      if (described(op, rule, {candidate, pending}) == pinned) return &candidate;
    }
    return nullptr;
  };
  const ComputeSharding* found = find();
  if (found == nullptr && add_pinned(op, rule, pinned, pending, shardings)) found = find();
  if (found != nullptr) return {*found, pending};
  fail_as_impossible(op.name(), choice_text(pinned));
}

// The placement that choices write as `text`, its reductions completed; nothing if it is of no mesh of this program.
std::optional<PlacementId> OpChooser::placement_of(std::string text, TypeId type) const {
  if (text.empty()) return PlacementId{};
  MeshPtr mesh = placements_.mesh();
  for (const MeshPtr& other : placements_.other_meshes()) {
    if (!text.starts_with(other->reference() + "[")) continue;
    mesh = other;
    text.erase(0, other->reference().size());
    break;
  }
  if (mesh == nullptr) return std::nullopt;
  std::vector<AxisList> dims;
  try {
    for (const DimSharding& dim : parse_short_sharding(text, mesh).dims) dims.push_back(dim.axes);
  } catch (const Error&) {
    return std::nullopt;  // choices may be of any program, or written by hand
  }
  if (dims.size() != source_.context().type(type).shape.size()) return std::nullopt;
  return placements_.of(type, std::move(dims), {}, Reducer::kNone, mesh);
}

// Adds the candidates that the pinned placements lead to, as if propagation had given them. Where an axis is as large
// as a dim, propagation leads to others than on the mesh that the choices are of.
bool OpChooser::add_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned, const Pending& pending,
                           ComputeShardings& shardings) {
  if (pinned.operands.size() != op.operand_count() || pinned.results.size() != op.result_count()) return false;
  std::vector<PlacementId> ids;
  const auto add = [&](const std::string& text, ValueId value) {
    const auto id = placement_of(text, type_of(value));
    if (id) ids.push_back(*id);
    return id.has_value();
  };
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (!add(pinned.operands[i], op.operand(i))) return false;
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (!add(pinned.results[i], op.result(i))) return false;
  }
  const MeshPtr mesh = placements_.has_several_meshes() ? working_mesh(source_.context(), ids) : nullptr;
  shardings.set_mesh(mesh);
  add_projected(ids, mesh, rule, shardings);
  if (!pending.axes.empty()) shardings.add(projection_, tensors_, pending.axes, pending.reducer);
  return true;
}

ChosenOp OpChooser::described(const OpView& op, const ShardingRule& rule, const OpChoice& choice) const {
  const auto& [compute, pending] = choice;
  ChosenOp text{.op = std::string(op.name()), .method = {}, .operands = {}, .results = {}};
  text.operands.reserve(op.operand_count());
  text.results.reserve(op.result_count());
  if (compute.method != nullptr) text.method = compute.method->name;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    text.operands.push_back(placements_.text(operand_placement(placements_, op, rule, compute, pending, i)));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    text.results.push_back(placements_.text(result_placement(placements_, op, rule, compute, i)));
  }
  return text;
}

// The placement that propagation gave to a result. Moved elements go directly to where a result of the function,
// or an annotation, needs them, if these are all the users.
PlacementId OpChooser::wanted(const OpView& op, size_t i) {
  const ValueId result = op.result(i);
  const PlacementId declared = placements_.declared(result);
  if (!op.def().traits.movement) return declared;
  const std::vector<ShardingId>& shardings = function_->result_shardings;
  PlacementId found;
  for (const Use use : source_.uses(result)) {
    PlacementId at = declared;
    if (use.op) {
      const Traits& traits = source_.op(use.op).def->traits;
      if (!traits.constraint && !traits.reshard) return declared;
      at = placements_.declared(source_.result(use.op));
    } else if (use.region == function_->body && use.index < shardings.size() && shardings[use.index]) {
      at = placements_.reduced(shardings[use.index], type_of(result));
    }
    if (found && found != at) return declared;
    found = at;
  }
  return found ? found : declared;
}

// ---- pending reductions --------------------------------------------------------------------------------------------

Pending OpChooser::pending_at_home(const OpView& op, const ShardingRule& rule) {
  std::vector<const Placement*> homes;
  for (const ValueId operand : op.operands()) homes.push_back(placements_.find(values_.home(operand, {})));
  Pending pending = pending_of(op, rule, homes);
  const bool may_have_parts = !pending.axes.empty() && linear_in(op, rule, pending.reducer) == Linear::kJoint;
  bool has_parts = false;
  for (size_t i = 0; may_have_parts && i < op.operand_count(); ++i) {
    const bool is_whole = op.def().is_joint(i) && !pending.operands[i];
    has_parts = has_parts || (is_whole && !is_free_addend(op, i, pending.reducer));
  }
  pending.only_if_less = has_parts && !is_summed_on(op, pending.reducer);
  return !pending.axes.empty() && mixes_owned(op, pending) ? Pending{} : pending;
}

// Whether owned and unowned addends meet in a copying op: their sum would make signalling NaNs quiet.
bool OpChooser::mixes_owned(const OpView& op, const Pending& pending) const {
  if (!only_copies(op.def()) || !is_inexact(op.result_type().dtype)) return false;
  size_t owned = 0, others = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (pending.operands[i]) ++(values_.is_owned(op.operand(i)) ? owned : others);
  }
  return owned > 0 && others > 0;
}

// Whether all that reads the result combines it with something else by the reducer: x + A + M.
bool OpChooser::is_summed_on(const OpView& op, Reducer reducer) const {
  const auto use = only_use(source_, op.result());
  // If there is one user, in the same region, the parts are added there and reduced once.
  return use && use->op && source_.op(use->op).parent == source_.op(op.id()).parent &&
         combines_by(*source_.op(use->op).def, reducer) && op.result_count() == 1;
}

double OpChooser::share(ValueId value) const {
  const auto found = shares_.find(value);
  return found == shares_.end() ? 1 : found->second;
}

double OpChooser::sharers(ValueId value, const OpView& user, Reducer reducer) const {
  const RegionId region = source_.op(user.id()).parent;
  double count = 0;
  for (const Use use : source_.uses(value)) {
    // A region takes and returns reduced values, so another user reduces this one in any case.
    if (!use.op || source_.op(use.op).parent != region) return 0;
    const OpView op(source_, use.op);
    if (use.op != user.id() && !may_pass(op, sharding_rule(op), reducer)) return 0;
    ++count;
  }
  return count;
}

// ---- prices --------------------------------------------------------------------------------------------------------

namespace {

// Whether an earlier operand is the same value in the same placement as the last of these.
bool is_brought_before(const OpView& op, const std::vector<PlacementId>& needs) {
  for (size_t i = 0; i + 1 < needs.size(); ++i) {
    if (op.operand(i) == op.operand(needs.size() - 1) && needs[i] == needs.back()) return true;
  }
  return false;
}

// The elements of a device's part.
double written(const Placement* placement) {
  return placement == nullptr ? 0 : static_cast<double>(element_count(placement->local_shape()));
}

}  // namespace

OpChooser::Price OpChooser::price(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute,
                                  const Pending& pending) {
  const bool reduces_early = !pending.axes.empty() && compute.passed.empty();
  Price price{.bytes = 0,
              .reduces_early = reduces_early != pending.only_if_less,
              .work = compute.local_work(op, rule),
              .reshards = 0};
  const bool has_own_partition = compute.has_own_partition();
  std::vector<PlacementId> tensors;  // for a dry run
  std::vector<bool> is_used;
  if (has_own_partition && compute.method->placements == nullptr) ++price.reshards;  // the method is one
  std::vector<PlacementId> needs;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const PlacementId need = operand_placement(placements_, op, rule, compute, pending, i);
    if (has_own_partition) tensors.push_back(need);
    needs.push_back(need);
    // multiply %x, %x: the version that the first operand needs serves the second.
    if (is_brought_before(op, needs)) continue;
    double bytes = values_.bytes(op.operand(i), need);
    if (reduces_early && pending.operands[i]) {
      const double count = sharers(op.operand(i), op, pending.reducer);
      // No sharers: another user pays for the reduction in any case.
      bytes = count == 0 ? 0 : bytes / count;
    }
    price.bytes += bytes;
    price.reshards += need == values_.home(op.operand(i), need) ? 0 : 1;
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    const PlacementId made = result_placement(placements_, op, rule, compute, i);
    const PlacementId declared = wanted(op, i);
    const bool uses_result = !source_.uses(op.result(i)).empty();
    if (has_own_partition) tensors.push_back(made);
    if (has_own_partition) is_used.push_back(uses_result);
    if (!uses_result) continue;
    if (made == declared) continue;
    // Charge moving each result to its propagated placement; its users are chosen later. A wide sum is reduced at once,
    // in each iteration of a loop.
    const TypeId type = type_made(placements_, op, i, made);
    const double runs = type == type_of(op.result(i)) ? share(op.result(i)) : 1;
    price.bytes += runs * planner_.bytes(type, made, declared);
    ++price.reshards;
    // A reshard writes the elements again.
    if (op.def().traits.movement) price.work += written(placements_.find(declared));
  }
  if (!has_own_partition) return price;
  const MethodCost cost = dry_runs_.cost(op, rule, *compute.method, tensors, is_used);
  // The time of a chain grows with the devices.
  const bool is_too_long = cost.is_chain && objective_ == Objective::kTime;
  price.bytes += is_too_long ? std::numeric_limits<double>::infinity() : cost.bytes;
  return price;
}

}  // namespace shardwise
