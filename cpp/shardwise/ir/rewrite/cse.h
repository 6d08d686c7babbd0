// SPDX-License-Identifier: Apache-2.0
//
// Merges equal ops of one region, in linear time:
//
//   %1 = reduce %x {add}       %1 = reduce %x {add}
//   %2 = reduce %x {add}  ->   %3 = multiply %1, %1
//   %3 = multiply %1, %2
//
// Equal ops have the same definition, attributes and operands (in any order, of a commutative op), and results of equal
// types, shardings and block sizes; their regions are equal by structure. The cause of a collective does not count: the
// first one stays. Ops with a side effect, constraints, reshards, and ops with one of these inside are never merged.
#pragma once

#include <cstdint>
#include <functional>

#include "shardwise/ir/module.h"

namespace shardwise {

// Whether a value may stand for another one that holds the same bits, by what the module does not know about them.
using SameMeaning = std::function<bool(ValueId kept, ValueId merged)>;

// Returns the number of ops that went.
int64_t cse(Module& module, const SameMeaning& same_meaning = {});

}  // namespace shardwise
