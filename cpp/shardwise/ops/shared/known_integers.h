// SPDX-License-Identifier: Apache-2.0
//
// Answers what is known about integers before a program runs (ir/known_integers.h):
//
//   known_integers(module, indices, {kAnyPlace, 0})     of component 0 of each index vector
#pragma once

#include "shardwise/ir/known_integers.h"

namespace shardwise {

// Of the elements at these places, one for each dim of the value. Nothing is known about values that are no integers.
KnownIntegers known_integers(const Module& module, ValueId value, const Dims& at);

// The elements of a line as numbers.
std::vector<int64_t> numbers_of(const NdArray& line);

}  // namespace shardwise
