// SPDX-License-Identifier: Apache-2.0
//
// Removes the ops that nothing depends on, in linear time:
//
//   %1 = sine %0         ->   return %0
//   %2 = cosine %1
//   return %0
//
// Ops with a side effect stay, and those with such an op in a region or in a function that they call. A constraint stays
// even when unused, since propagation reads it, unless kRemove is given.
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

enum class UnusedConstraints : uint8_t { kKeep, kRemove };

// Returns the number of ops that went, without those in their regions.
int64_t dce(Module& module, UnusedConstraints constraints = UnusedConstraints::kKeep);

// The op's own side effect, or one of the ops that it executes; a constraint that is kept counts as one.
bool has_effect(const Module& module, OpId id, UnusedConstraints constraints);

}  // namespace shardwise
