// SPDX-License-Identifier: Apache-2.0
//
// Carries into which the body of a loop only accumulates:
//
//   %1:2 = while(%i = 0, %dw = 0) … do {
//     %2 = dot_general %x, %dy          unreduced over {"data"}
//     %3 = add %dw, %2
//     return …, %3
//   }
//
// Every op that depends on the carry is linear in it, or an annotation with unreduced axes, and the body returns it as the same carry. So it may stay
// unreduced over the axes of its addends: each device accumulates its own part, and one reduction after the loop
// replaces one per iteration (accumulator_chooser.h decides that).
#pragma once

#include <vector>

#include "shardwise/choice/op_linearity.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct Accumulator {
  size_t carry = 0;
  // All ops that depend on the carry, in the order of the body. None: an inner loop takes the carry as its own and
  // accumulates into it.
  std::vector<OpId> ops;
};

// Carries that may be accumulators, judging only by the ops. No op is in two of them.
std::vector<Accumulator> find_accumulators(Module& module, const ProgramLinearity& linearity, const OpView& loop);

// The values of the body that reach nothing but accumulators, through linear ops: their reductions can be deferred.
std::vector<ValueId> find_deferred(Module& module, const ProgramLinearity& linearity, const OpView& loop,
                                   const std::vector<Accumulator>& accumulators);

}  // namespace shardwise
