// SPDX-License-Identifier: Apache-2.0
//
// The loops around the op that the walk is at, innermost last:
//
//   while(%a = %0) do {            %0 is the entry of the accumulator %b, 4 · 3 its trips
//     %1 = while(%b = %a) do { … return add %b, %x }
//     return %1
//   }
#pragma once

#include <vector>

#include "shardwise/choice/greedy/accumulator_chooser.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct OpenLoop {
  OpView op;
  double trips = 1;
  std::vector<Accumulator> accumulators;
  std::vector<PlacementId> carries;
  std::vector<ValueId> addends;  // by carry: why it stays unreduced

  bool accumulates(size_t carry) const;
  const Accumulator* accumulator_with(OpId op) const;  // null for an op of no accumulator
};

class OpenLoops {
 public:
  OpenLoops(Module& module, const ProgramLinearity& linearity) : module_(module), linearity_(linearity) {}

  void enter(const OpView& op, double trips, ProgramPlacements& placements);
  OpenLoop leave();
  OpenLoop& innermost() { return loops_.back(); }

  // Visits the carry of the innermost loop, and that of each loop around it that only passes it on.
  template <class Visit>
  void visit_relays(size_t carry, Visit&& visit) {
    for (size_t at = loops_.size(); at-- > 0;) {
      visit(loops_[at], carry);
      if (at == 0 || !find_relay(loops_[at - 1], loops_[at].op.operand(carry), carry)) return;
    }
  }
  AccumulatorSite site(size_t carry);

 private:
  // Whether the loop passes the value, which is one of its carries, on to an inner loop. Sets that carry.
  bool find_relay(const OpenLoop& loop, ValueId value, size_t& carry) const;

  Module& module_;
  const ProgramLinearity& linearity_;
  std::vector<OpenLoop> loops_;
};

}  // namespace shardwise
