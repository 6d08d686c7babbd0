// SPDX-License-Identifier: Apache-2.0
//
// The placement of values while `assign` visits a program: each value's home, which is the placement that its op
// produced, and the versions that users have needed so far.
//
//   values.add(%0, made, <[{"x"}: 4]>)
//   values.get(%0, <[{}: 16]>, operand_cause(tanh, 0))    // emits sdy.reshard {cause = "operand 0 of tanh"}
//   values.get(%0, <[{}: 16]>, operand_cause(add, 1))     // the same value again
//
// A reshard starts from the nearest version by bytes, or from the one that is pinned. Completing a pending
// reduction keeps the reduction's cause and location. Constants are created once for each needed placement, outside
// all loops.
//
// The result of an elementwise op on a narrower value is recomputed where it is needed, if moving the narrower value
// sends less:
//
//   %1 = convert %0 : bf16 -> f32     get(%1, replicated)  ->  %2 = sdy.reshard %0, %3 = convert %2
//
// Inside a region, values from around it keep their versions. A version that a loop needs of such a value is made
// before the loop, once for all trips; one that a branch needs is made in the branch. A region never takes a pending
// reduction from around it: that would be reduced in every trip.
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/emission/cause.h"
#include "shardwise/choice/choices_in_progress.h"
#include "shardwise/choice/reshard_planner.h"
#include "shardwise/choice/program_placements.h"

namespace shardwise {

// Whether a device can create its part of a constant without the others: the rule has a pass-through factor for each sharded dim.
bool can_be_made(const ShardingRule& rule, const Placement* wanted);

class PlacedValues {
 public:
  // `builder` creates the reshards and constants that users need. `sources` gets those that users start from.
  PlacedValues(const Module& source, Builder& builder, ReshardPlanner& planner, ProgramPlacements& placements,
               TextChoices sources)
      : source_(source),
        builder_(builder),
        planner_(planner),
        placements_(placements),
        sources_(sources),
        scopes_{{.region = builder.region(), .trips = 1, .versioned = {}}},
        placed_(source.value_count()) {}

  // Enters the region of a loop with `trips` iterations, or of a branch (1). leave() drops the values of the region.
  void enter(double trips) { scopes_.push_back({builder_.region(), trips, {}}); }
  void leave();

  // The builder's region is now the body of a function. The values of other functions are not used in it.
  void enter_function() { scopes_ = {{.region = builder_.region(), .trips = 1, .versioned = {}}}; }

  // An argument of main has the placement of its sharding, which may be unreduced; those of other functions are
  // reduced.
  void add_argument(ValueId argument, bool is_of_main);
  // `pending_loc` is the location of a reduction that is pending at home, if it is not that of the value.
  void add(ValueId source, ValueId made, PlacementId home, Cause pending_cause = {}, LocId pending_loc = {});
  // The value is unreduced at home, and one device has each element (ops/partitioning/owned_rows.h).
  void set_owned(ValueId source) { placed_[source.index].is_owned = true; }
  bool is_owned(ValueId source) const { return placed_[source.index].is_owned; }
  // A value that nothing has read yet.
  void move_home(ValueId source, PlacementId home, Cause pending_cause, LocId pending_loc);
  void add_constant(const OpView& op);
  // `source` is `original`, resharded to the declared placement of `source`.
  void add_alias(ValueId source, ValueId original, const Cause& cause);

  PlacementId home(ValueId source, PlacementId of_constants) const;
  const Cause& pending_cause(ValueId source) const { return placed_[source.index].pending_cause; }
  LocId pending_loc(ValueId source) const { return placed_[source.index].loc; }
  // The placement of the entry value of a loop's carry: that of the carry if the value is unreduced like it already,
  // otherwise without unreduced axes.
  PlacementId entry(ValueId source, PlacementId carry) const;
  // Received by one device in each run of the op at hand, to have the value like that. The bytes of a version that is
  // made before a loop count for all its trips together.
  double bytes(ValueId source, PlacementId need);
  ValueId get(ValueId source, PlacementId need, const Cause& cause);

 private:
  struct Version {
    PlacementId placement;
    ValueId value;
    size_t depth;  // of its region in scopes_
  };
  struct Placed {
    size_t depth = 0;               // of the region where the value is defined
    std::vector<Version> versions;  // home first
    Cause pending_cause;            // why a reduction is pending at home
    LocId loc;
    OpId constant;  // instead of a home
    bool is_owned = false;
  };
  const Version* nearest(const Placed& placed, TypeId type, PlacementId need, double& bytes);
  // Like nearest(), but returns null and sets `narrow` if moving the narrower value sends less.
  const Version* cheapest(ValueId source, PlacementId need, double& bytes, ValueId& narrow);
  // For a user: the version that is there already, the only one, the cheapest, or the one that is pinned.
  const Version* chosen(ValueId source, PlacementId need, ValueId& narrow);
  ValueId narrower(ValueId source) const;
  bool is_pending(const Placed& placed) const;
  ValueId make_again(ValueId source, ValueId narrow, PlacementId need, const Cause& cause);
  bool can_reach(PlacementId from, PlacementId need) const;
  void make_constant(ValueId source, PlacementId need);
  size_t depth() const { return scopes_.size() - 1; }
  size_t depth_of_version(const Placed& placed) const;
  size_t depth_outside_loops(const Placed& placed) const;
  void keep(ValueId source, PlacementId placement, ValueId made, size_t depth);

  Module& target() const { return builder_.module(); }

  struct Scope {
    RegionId region;
    double trips;
    std::vector<ValueId> versioned;  // source values from around, with versions in this region
  };

  const Module& source_;
  Builder& builder_;
  ReshardPlanner& planner_;
  ProgramPlacements& placements_;
  TextChoices sources_;
  std::vector<Scope> scopes_;   // the body of the function first
  std::vector<Placed> placed_;  // by source value
};

}  // namespace shardwise
