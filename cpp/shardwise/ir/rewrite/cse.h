// SPDX-License-Identifier: Apache-2.0
//
// Merges equal ops of one region, in linear time:
//
//   %1 = reduce %x {add}       %1 = reduce %x {add}
//   %2 = reduce %x {add}  ->   %3 = multiply %1, %1
//   %3 = multiply %1, %2
//
// Equal ops have the same definition, attributes and operands (in any order, of a commutative op), and results of equal
// types and shardings, and hold equal parts of global values: the same bits may be padding in one of two values. Their
// regions are equal by structure. The cause of a collective does not count: the first one stays. Ops with a side
// effect, constraints, reshards, and ops that execute one of these are never merged.
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

// Returns the number of ops that went.
int64_t cse(Module& module);

}  // namespace shardwise
