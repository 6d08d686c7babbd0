// SPDX-License-Identifier: Apache-2.0
//
// Repeats visits of propagation with an observer, from the shardings that the op's tensors had at that time:
//
//   %0 = dot_general %x, %w        %x: [{"a"}, {?}]   %w: [{?}, {"a"}]   %0: [{?}, {"a", ?}]
//
//   VisitReplay replay(module, history);
//   replay.observe({dot_general, tensor 2, factor i, "a"}, history.now(), kLastRound)     kOtherFactor: j has it
#pragma once

#include "shardwise/explanation/axis_history.h"
#include "shardwise/propagation/op_propagation.h"

namespace shardwise {

// An axis that tensor `other` of an op has on a factor, and tensor `tensor` does not.
struct AxisQuestion {
  OpId op;  // none: result `result` of main and the value returned there
  uint32_t result = 0;
  size_t tensor = 0, other = 0;
  FactorId factor = 0;
  AxisRef axis = {};
};

class VisitReplay {
 public:
  VisitReplay(const Module& module, AxisHistory& history);

  // The decision of a visit in `round` just before step `time`. With `only_two` as if the op had no further tensors,
  // and the tensor no axes that the other one contradicts.
  AxisObserver observe(const AxisQuestion& question, size_t time, int round, bool only_two = false);

  // InternalError, unless all visits end as they were recorded.
  void verify();

 private:
  OpPropagation::Visit visit(OpId op, uint32_t result, int round);
  void verify_visit(size_t begin);

  const Module& module_;
  AxisHistory& history_;
  OpPropagation ops_;
};

}  // namespace shardwise
