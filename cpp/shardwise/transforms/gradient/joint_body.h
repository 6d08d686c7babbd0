// SPDX-License-Identifier: Apache-2.0
//
// The body of a counted loop and its gradient, in one region that no op owns yet:
//
//   %carry …                        arguments: the carries that change, then those below
//   %1 = tanh %carry                the ops of the body
//   %2 = multiply %ct, …            their gradient
//   %3 = add %acc, %2               sums over trips: gradients of values from around the loop
//
// The forward loop takes the first part of it, the backward loop the other one (backward_split.h).
#pragma once

#include <vector>

#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/ops/control/loop_rows.h"
#include "shardwise/transforms/gradient/reverse_walk.h"

namespace shardwise {

// A carry of the backward loop.
struct CotangentCarry {
  ValueId of;        // the operand of the loop, or the value from around it, that gets the cotangent
  ValueId init;      // the cotangent after the loop; none: zeros
  ValueId argument;  // of the joint region
  ValueId next;      // the value after the trip
};

// A cotangent of a stacked output: the backward loop reads it row by row.
struct OutputCotangent {
  ValueId argument;  // of the joint region
  ValueId value;     // around the loop
};

struct JointBody {
  RegionId region;
  uint32_t first_made = 0;                 // ops from here on belong to the gradient
  std::vector<ValueId> arguments;          // by carry; the operand where the body returns the carry unchanged
  std::vector<ValueId> results;            // by carry
  std::vector<CotangentCarry> cotangents;  // of carries, and of values from around the loop
  std::vector<OutputCotangent> outputs;
};

JointBody build_joint_body(ReverseWalk& walk, const OpView& loop, const CountedLoop& counted,
                           const std::vector<RowWrite>& writes);

}  // namespace shardwise
