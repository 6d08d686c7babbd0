// SPDX-License-Identifier: Apache-2.0
//
// The mark of ops that compute again what other ops have computed, as in the gradient of a checkpoint:
//
//   %0 = stablehlo.dot_general %x, %w                               forward
//   %1 = stablehlo.optimization_barrier %x                          backward
//   %2 = stablehlo.dot_general %1, %w {shardwise.again = 1 : i64}   %0, once more
//   %3 = stablehlo.dot_general %dy, %w                              its gradient
//
// The number is how many others compute the same before it: 2 in a checkpoint that is inside another one. Ops with
// different marks are not equal, so that cse keeps them apart. What takes the place of a marked op is marked: its
// decomposition, the ops of the function that it calls, and itself for a batch. Its gradient is not.
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

// The mark of an op; 0 without one.
int64_t times_before(const Module& module, OpId op);

// The op and those of its regions, except combiners and ops without operands, compute once more what they did.
void mark_again(Module& module, OpId op);

// All ops from number `first` on took the place of `op`: they have its mark.
void mark_as(Module& module, OpId op, size_t first);
// Or have none, because rules copy attributes.
void unmark(Module& module, size_t first);

}  // namespace shardwise
