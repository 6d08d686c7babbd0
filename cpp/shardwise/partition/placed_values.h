// SPDX-License-Identifier: Apache-2.0
//
// The placement of values while `assign` visits a program: each value's home, which is the placement that its op
// produced, and the versions that users have needed so far.
//
//   values.add(%0, made, <[{"x"}: 4]>, "")
//   values.get(%0, <[{}: 16]>, "operand 0 of tanh")    // emits sdy.reshard {cause = "operand 0 of tanh"}
//   values.get(%0, <[{}: 16]>, "operand 1 of add")     // the same value again
//
// A reshard starts from the nearest version by bytes. The completion of a pending reduction gets the reduction's cause
// and location instead of the user's. Constants are created once for each needed placement.
#pragma once

#include <string>
#include <vector>

#include "shardwise/partition/plan_reshards.h"
#include "shardwise/partition/program_placements.h"

namespace shardwise {

// Whether a device can create its part of a constant alone: the rule has a pass-through factor for each sharded dim.
bool can_be_made(const ShardingRule& rule, const Placement* wanted);

class PlacedValues {
 public:
  // What they need is created by `builder`.
  PlacedValues(const Module& source, Builder& builder, ReshardPlanner& planner, ProgramPlacements& placements)
      : source_(source), builder_(builder), planner_(planner), placements_(placements), placed_(source.value_count()) {}

  void add_argument(ValueId argument);  // of main
  void add(ValueId source, ValueId made, PlacementId home, std::string pending_cause);
  void add_constant(const OpView& op);
  // `source` is `original`, resharded to the declared placement of `source`.
  void add_alias(ValueId source, ValueId original, std::string_view cause);

  PlacementId home(ValueId source, PlacementId of_constants) const;
  const std::string& pending_cause(ValueId source) const { return placed_[source.index].pending_cause; }
  double bytes(ValueId source, PlacementId need);  // received by one device, to have the value like that
  ValueId get(ValueId source, PlacementId need, std::string_view cause);

 private:
  struct Version {
    PlacementId placement;
    ValueId value;
  };
  struct Placed {
    std::vector<Version> versions;  // home first
    std::string pending_cause;      // why a reduction is pending at home
    LocId loc;
    OpId constant;  // instead of a home
  };
  const Version* nearest(const Placed& placed, TypeId type, PlacementId need, double& bytes);
  bool can_reach(PlacementId from, PlacementId need) const;
  void make_constant(Placed& placed, PlacementId need);

  Module& target() const { return builder_.module(); }

  const Module& source_;
  Builder& builder_;
  ReshardPlanner& planner_;
  ProgramPlacements& placements_;
  std::vector<Placed> placed_;  // by source value
};

}  // namespace shardwise
