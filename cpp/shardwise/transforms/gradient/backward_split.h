// SPDX-License-Identifier: Apache-2.0
//
// Splits a region that holds a function and its gradient into two parts that run at different times:
//
//   %1 = dot %x, %w              forward:  %1, %2                       saved: %2
//   %2 = tanh %1                 backward: %3, %4, %5, %6
//   %3 = multiply %2, %2
//   %4 = subtract 1, %3
//   %5 = multiply %ct, %4
//   %6 = dot %5, %w
//
// Backward ops depend on a cotangent or on a barrier added by differentiation, and are needed for the wanted values.
// They read values of the forward part: some are saved, and cheap ops (elementwise, movement, constants) are recomputed
// from these and from values that are available anyway. The saved values are a minimum cut: no other choice costs less.
// Ties go to the choice with fewer recomputed ops.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

struct BackwardSplit {
  std::vector<OpId> forward;   // all ops that do not depend on a cotangent, in order
  std::vector<OpId> backward;  // in order, with the ops that are computed again
  std::vector<ValueId> saved;  // in order
};

struct BackwardRegion {
  RegionId region;
  std::vector<ValueId> cotangents;            // arguments of the region
  std::vector<ValueId> wanted;                // what the backward part computes
  uint32_t first_made = 0;                    // ops from here on belong to the gradient
  std::function<bool(ValueId)> is_available;  // of an argument of the region
  std::function<int64_t(ValueId)> cost;       // of saving a value
};

int64_t bytes_of(const Module& module, ValueId value);  // at least 1
BackwardSplit split_backward(const Module& module, const BackwardRegion& joint);

}  // namespace shardwise
