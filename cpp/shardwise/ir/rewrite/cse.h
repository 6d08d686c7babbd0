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
//
// What a checkpoint computes again stands behind a barrier of its operands, and so it is not merged with the first run.
// That holds for values of no operand, too, or the first ones would be kept in memory until then:
//
//   %1 = iota                      %1 = iota
//   %2 = compare %1, %c            %2 = compare %1, %c
//   %3 = optimization_barrier %x   %3 = optimization_barrier %x
//   %4 = iota                 ->   %4 = iota
//   %5 = compare %4, %c            %5 = compare %4, %c
//   %6 = iota                      %7 = compare %4, %3
//   %7 = compare %6, %3
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

// Returns the number of ops that went.
int64_t cse(Module& module);

}  // namespace shardwise
