// SPDX-License-Identifier: Apache-2.0
//
// Where the values of a program are, as the walk over its ops has chosen so far: each value's home, which is the placement
// that its op makes, and the versions that users need. There are placements and depths of regions, and no values: all that
// prices read. How each version is made goes to the Choice.
//
//   versions.add(%0, <[{"x"}: 4]>)
//   versions.cost(%0, <[{}: 16]>)      of having it like that (costs.h)
//   versions.need(%0, <[{}: 16]>)      from now on it is there, and cost() is 0
//
// A version is made from the nearest one, or from the one that is pinned. What an op makes of less is computed again where
// it is needed, if moving the operand costs less (computed_again.h):
//
//   %1 = convert %0 : bf16 -> f32      need(%1, replicated)  ->  need(%0, replicated), convert again
//
// Inside a region, values from around it keep their versions. A version that a loop needs of such a value is made before
// the loop, once for all trips; one that a branch needs is made in the branch. A region never takes a pending reduction
// from around it: that would be reduced in every trip. Constants are made for each needed placement, outside all loops.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/choice/choice_in_progress.h"
#include "shardwise/choice/computed_again.h"
#include "shardwise/choice/costs.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

class Versions {
 public:
  Versions(const Module& module, Costs& costs, ProgramPlacements& placements, ChoiceInProgress& choice)
      : module_(module), costs_(costs), placements_(placements), choice_(choice), placed_(module.value_count()) {}

  // The values of other functions are not used in this one.
  void enter_function(RegionId body) { scopes_ = {{.region = body, .loop_trips = {}, .versioned = {}}}; }
  void enter_branch(RegionId region) { scopes_.push_back({.region = region, .loop_trips = {}, .versioned = {}}); }
  void enter_loop(RegionId region, double trips) {
    scopes_.push_back({.region = region, .loop_trips = trips, .versioned = {}});
  }
  void leave();  // drops the values of the region

  void add(ValueId value, PlacementId home);
  void move_home(ValueId value, PlacementId home);  // of a value that nothing has read yet
  void add_constant(const OpView& op);
  // `value` is `original`, resharded to this placement. Its versions hold the same elements.
  void add_alias(ValueId value, ValueId original, PlacementId placement);

  PlacementId home(ValueId value, PlacementId of_constants) const;
  bool is_constant(ValueId value) const { return static_cast<bool>(placed_[value.index].constant); }
  // The placement of the entry value of a loop's carry: that of the carry, or its owned form, if the value is unreduced
  // like it already, otherwise without unreduced axes.
  PlacementId entry(ValueId value, PlacementId carry) const;
  // Of having the value like that, for one run of the op at hand. A version that is made before a loop counts for all its
  // trips together.
  Cost cost(ValueId value, PlacementId need);
  // Whether a region may need the value like that here: it takes no pending reduction from around it.
  bool can_be_brought(ValueId value, PlacementId need) const;
  void need(ValueId value, PlacementId need);

 private:
  struct Version {
    PlacementId placement;
    size_t depth;  // of its region in scopes_
  };
  struct Placed {
    size_t depth = 0;                 // of the region where the value is defined
    std::vector<Version> versions;    // home first
    OpId constant = {};               // instead of a home
    bool follows_from_whole = false;  // each device can make any part of it by itself
  };
  struct Scope {
    RegionId region;
    std::optional<double> loop_trips;  // none: it is no region of a loop
    std::vector<ValueId> versioned;    // values from around, with versions in this region
  };

  const Version* nearest(const Placed& placed, TypeId type, PlacementId need, Cost& cost);
  // Like nearest(), but returns null and sets `again` if it costs less to compute the value again.
  const Version* cheapest(ValueId value, PlacementId need, Cost& cost, ComputedAgain& again);
  // For a user: the version that is there already, the only one, the cheapest, or the one that is pinned.
  const Version* chosen(ValueId value, PlacementId need, ComputedAgain& again);
  class OpsAgain;  // chains of ops that are computed again
  bool is_pending(const Placed& placed) const;
  void compute_again(ValueId value, const ComputedAgain& again, PlacementId placement);
  void make_constant(ValueId value, PlacementId need);
  size_t depth() const { return scopes_.size() - 1; }
  size_t depth_of_version(const Placed& placed) const;
  size_t depth_outside_loops(const Placed& placed) const;
  void keep(ValueId value, PlacementId placement, size_t depth, VersionChoice version);

  const Module& module_;
  Costs& costs_;
  ProgramPlacements& placements_;
  ChoiceInProgress& choice_;
  std::vector<Scope> scopes_;   // the body of the function first
  std::vector<Placed> placed_;  // by value
};

// Whether a value in one placement can be brought to another: only reductions that are already pending can stay pending.
bool can_bring(const ProgramPlacements& placements, PlacementId from, PlacementId to);

// Whether a device can create its part of a constant without the others: the rule has a pass-through factor for each
// sharded dim.
bool can_be_made(const ShardingRule& rule, const Placement* wanted);

}  // namespace shardwise
