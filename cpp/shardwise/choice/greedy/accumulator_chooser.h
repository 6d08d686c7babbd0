// SPDX-License-Identifier: Apache-2.0
//
// Chooses whether an accumulator (accumulators.h) stays unreduced over the axes of its addends:
//
//   %3 = add %dw, %2        %2 unreduced over {"data"}, 10 trips
//
//   reduced in each trip    10 all_reduces of %2
//   unreduced               what the entry value costs (nothing for a constant), and one all_reduce after the loop
//
// Less time wins, unless the carry is pinned. The gradients of stacked layers are as many bytes in each trip as after the loop:
// they are reduced in each trip, although in more rounds, if devices would hold more of the carry otherwise, or if the
// products of a trip take longer than its reductions, which then wait for nothing. If both ways cost the same, the carry stays
// unreduced.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/greedy/accumulators.h"
#include "shardwise/choice/greedy/heuristics.h"
#include "shardwise/choice/versions.h"

namespace shardwise {

struct AccumulatorChoice {
  PlacementId carry;          // unreduced
  std::vector<OpChoice> ops;  // of the accumulator
  ValueId addend;             // the first one: the reason for the reduction
};

// The loop, or the outermost one of several loops that pass the carry on.
struct AccumulatorSite {
  double trips = 1;  // of the body, in one run of that loop
  ValueId entry;     // the value of the carry before it
  ValueId result;    // the value of the carry after it
};

class AccumulatorChooser {
 public:
  AccumulatorChooser(Module& module, const ProgramLinearity& linearity, Versions& versions,
                     ProgramPlacements& placements, Costs& costs, ChoiceInProgress& choice,
                     const DeferredReductions& deferred)
      : module_(module),
        linearity_(linearity),
        versions_(versions),
        placements_(placements),
        costs_(costs),
        choice_(choice),
        deferred_(deferred) {}

  // At the last op of the accumulator. None: the addends are reduced in each trip.
  std::optional<AccumulatorChoice> choose(const OpView& loop, const Accumulator& accumulator,
                                          const AccumulatorSite& site);

 private:
  struct Addend {
    OpId op;
    ValueId value;
    const Placement* home;
  };
  using Placed = std::unordered_map<ValueId, PlacementId>;  // the carry, and what depends on it
  struct PlacedCarry {
    AccumulatorChoice choice;
    Placed placed;
  };

  void read_addends(const Accumulator& accumulator, const Placed& dependents);
  std::vector<PlacementId> carry_placements(ValueId carry) const;
  std::vector<PlacedCarry> candidates(const Region& body, const Accumulator& accumulator) const;
  // None: reducing in each trip costs less.
  const PlacedCarry* cheapest(std::span<const PlacedCarry> candidates, const Accumulator& accumulator,
                              const AccumulatorSite& site, const Placed& dependents);
  bool place_ops(const Accumulator& accumulator, Placed& placed, std::vector<OpChoice>& choices) const;
  std::optional<OpChoice> place_op(const OpView& op, const Placed& placed) const;
  Cost cost_in_trip(const Accumulator& accumulator, const Placed& placed, const std::vector<OpChoice>& choices);
  Cost cost_if_reduced(const Placed& dependents);

  Module& module_;
  const ProgramLinearity& linearity_;
  Versions& versions_;
  ProgramPlacements& placements_;
  Costs& costs_;
  ChoiceInProgress& choice_;
  const DeferredReductions& deferred_;
  // These describe the accumulator that choose() was asked about:
  std::vector<Addend> addends_;
  AxisList axes_;  // over which all of them are unreduced
  Reducer reducer_ = Reducer::kNone;
};

}  // namespace shardwise
