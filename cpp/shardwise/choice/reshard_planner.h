// SPDX-License-Identifier: Apache-2.0
//
// The plans of the reshards that one compilation asks about, by ids:
//
//   ReshardPlanner planner(context, options);
//   planner.plan(type, <[{"x"}: 4]>, <[{}: 16]>).steps       one all_gather
//   planner.price(type, <[{"x"}: 4]>, <[{}: 16]>, h100)      its time, and the bytes that one device receives
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "shardwise/cost/hardware.h"
#include "shardwise/ir/compile_options.h"
#include "shardwise/ir/module.h"
#include "shardwise/reshard/plan_price.h"

namespace shardwise {

// By (type, from, to), from the plans and prices of the process (reshard/plan_cache.h, price_cache.h).
class ReshardPlanner {
 public:
  struct Key {
    TypeId type;
    PlacementId from, to;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };

  explicit ReshardPlanner(Context& context) : context_(context) {}  // of the plans that send least
  // By time, the plans are the fastest ones on the hardware.
  ReshardPlanner(Context& context, const CompileOptions& options);

  // Both placements are on meshes with the same devices. No id means that the program has no mesh.
  const ReshardPlan& plan(TypeId type, PlacementId from, PlacementId to);
  // A plan of these moves (reshard/plan.h); none if there is none.
  std::optional<ReshardPlan> plan_with_moves(TypeId type, PlacementId from, PlacementId to,
                                             std::span<const std::string> moves) const;
  // Not kept here: who asks keeps it.
  ReshardPrice price(TypeId type, PlacementId from, PlacementId to, const HardwarePtr& hardware);
  int64_t plans() const { return plans_made_; }     // that were asked for
  int64_t new_plans() const { return new_plans_; }  // that no compilation had asked for

 private:
  ReshardProblem problem(TypeId type, PlacementId from, PlacementId to) const;
  void count(bool is_new);

  Context& context_;
  HardwarePtr hardware_;  // none: by bytes
  std::unordered_map<Key, std::shared_ptr<const ReshardPlan>, KeyHash> plans_;
  int64_t plans_made_ = 0, new_plans_ = 0;
};

}  // namespace shardwise
