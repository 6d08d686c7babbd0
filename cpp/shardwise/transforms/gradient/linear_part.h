// SPDX-License-Identifier: Apache-2.0
//
// The part of a program that a later call runs, as a region of its own:
//
//   %1 = sine %x              stays                     vjp of %1, with a cotangent that is not known yet
//   %2 = cosine %x            stays: a residual
//   %3 = multiply %ct, %2     moves                     region(%r, %ct) { %3 = multiply %ct, %r; return %3 }, captured %2
//
// The region captures nothing, so it can be copied to other places, and to other programs.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

struct LinearPart {
  RegionId region;                // arguments: the captured values, then the variables; belongs to no op
  std::vector<ValueId> captured;  // values of the program
};

// Removes these arguments of the region.
void leave_region(Module& module, RegionId region, std::span<const ValueId> variables);
// A place in the builder's region, after its last op.
OpId mark_end(Builder& builder);
// Moves the ops behind the mark that depend on the variables, which are arguments of the builder's region and leave it.
// A result may be none: zeros of the type of `like`. Removes the mark.
LinearPart take_linear_part(Builder& builder, OpId mark, std::span<const ValueId> variables,
                            std::span<const ValueId> results, std::span<const ValueId> like);

// The transpose of a linear part: a region of the same captured values and of cotangents of its results, which returns
// those of its variables.
RegionId transpose_linear_part(Module& module, RegionId region, size_t captured, LocId loc);

}  // namespace shardwise
