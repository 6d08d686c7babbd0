// SPDX-License-Identifier: Apache-2.0
//
// Replaces every reshard by its plan (reshard/plan.h): one of Shardy's collectives, a reduction and one more, or one
// exchange:
//
//   %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<16x4xf32>            %0: [{"x"}, {}]
//   %1 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x4xf32>
//
// The cause that `assign` gave a reshard (attribute `cause`) is copied to each of its collectives. If a step leaves a
// dim in blocks other than ceil(size / shards), the value's blocks record it (Module::part).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "shardwise/ir/pass.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

// Plans by (type, from, to), from the plans of the process (reshard/plan_cache.h).
class ReshardPlanner {
 public:
  explicit ReshardPlanner(Context& context) : context_(context) {}

  // Both placements are on meshes with the same devices. No id means that the program has no mesh.
  const ReshardPlan& plan(TypeId type, PlacementId from, PlacementId to);
  // A plan of these moves (reshard/plan.h); none if there is none.
  std::optional<ReshardPlan> plan_with_moves(TypeId type, PlacementId from, PlacementId to,
                                             std::span<const std::string> moves) const;
  double bytes(TypeId type, PlacementId from, PlacementId to) { return from == to ? 0 : plan(type, from, to).bytes; }
  int64_t plans() const { return static_cast<int64_t>(plans_.size()); }
  int64_t new_plans() const { return new_plans_; }  // that no compilation had asked for

 private:
  ReshardProblem problem(TypeId type, PlacementId from, PlacementId to) const;

  struct Key {
    TypeId type;
    PlacementId from, to;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  Context& context_;
  std::unordered_map<Key, std::unique_ptr<ReshardPlan>, KeyHash> plans_;
  int64_t new_plans_ = 0;
};

// A program that `assign` has not seen stays at its stage.
Module plan_reshards(Module module, PassContext& context);
inline constexpr Pass kPlanReshards{.name = "plan_reshards",
                                    .doc = "turn each reshard into the cheapest collectives",
                                    .run = plan_reshards,
                                    .needs_runnable = true,
                                    .takes = {.last = Stage::kResharded},
                                    .makes = Stage::kResharded,
                                    .keeps = Snapshot::kResharded};

}  // namespace shardwise
