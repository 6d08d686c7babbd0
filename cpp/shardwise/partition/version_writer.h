// SPDX-License-Identifier: Apache-2.0
//
// The values of the assigned program while `assign` writes it: each value's home, and the versions that users need, made as the
// Choice says.
//
//   writer.add(%0, made)
//   writer.get(%0, <[{}: 16]>, operand_cause(tanh, 0))    // emits sdy.reshard {cause = "operand 0 of tanh"}
//   writer.get(%0, <[{}: 16]>, operand_cause(add, 1))     // the same value again
//
// Completing a pending reduction keeps the reduction's cause and location.
#pragma once

#include <vector>

#include "shardwise/choice/choice.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/emission/cause.h"
#include "shardwise/ir/builder.h"

namespace shardwise {

class VersionWriter {
 public:
  // `builder` creates the reshards and constants that users need.
  VersionWriter(const Module& source, const Choice& choice, Builder& builder, ProgramPlacements& placements)
      : source_(source), choice_(choice), builder_(builder), placements_(placements), placed_(source.value_count()) {}

  // Enters a region of the source; what is made for it goes to the region of the builder. leave() drops its values.
  void enter(RegionId region) { scopes_.push_back({region, builder_.region(), {}}); }
  void leave();
  void enter_function(RegionId body) {
    scopes_.clear();
    enter(body);
  }

  // `pending_loc` is the location of a reduction that is pending at home, if it is not that of the value.
  void add(ValueId source, ValueId made, PlacementId home, Cause pending_cause = {}, LocId pending_loc = {});
  void add_constant(const OpView& op);
  // `source` is `original` in this placement. All versions of the original come along, because they hold the same
  // elements.
  void add_alias(ValueId source, ValueId original, PlacementId placement, const Cause& cause);

  PlacementId home(ValueId source, PlacementId of_constants) const;
  const Cause& pending_cause(ValueId source) const { return placed_[source.index].pending_cause; }
  LocId pending_loc(ValueId source) const { return placed_[source.index].loc; }
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
    OpId constant = {};  // instead of a home
  };
  struct Scope {
    RegionId source, made;
    std::vector<ValueId> versioned;  // source values from around, with versions in this region
  };
  struct Found {
    VersionChoice version;
    size_t depth = 0;
  };

  size_t depth() const { return scopes_.size() - 1; }
  const Version* find(ValueId source, PlacementId placement) const;
  Found chosen(ValueId source, PlacementId need) const;
  ValueId reshard(ValueId source, const Version& from, PlacementId need, const Cause& cause, size_t depth);
  ValueId make_again(ValueId source, std::span<const ValueId> operands, size_t depth);
  void keep(ValueId source, PlacementId placement, ValueId made, size_t depth);
  void write_placement(ValueId made, PlacementId placement);
  Module& target() const { return builder_.module(); }

  const Module& source_;
  const Choice& choice_;
  Builder& builder_;
  ProgramPlacements& placements_;
  std::vector<Scope> scopes_;   // the body of the function first
  std::vector<Placed> placed_;  // by source value
};

}  // namespace shardwise
