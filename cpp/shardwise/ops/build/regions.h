// SPDX-License-Identifier: Apache-2.0
//
// Creates regions that combine two rows of scalars, and applies such a region to whole tensors.
//
// counted_region adds a boolean to the rows: whether there is something to count. Any region gets a neutral row
// (…, false) by it:   (a, p) · (b, q) = (p and q ? a · b : p ? a : b, p or q)
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// `operands` (all of one shape) stand for the region's arguments; gives its results.
// Ops without a kernel become the ops that they consist of. The region may be one of another module with the same
// context, unless it captures values: scalars of the builder's.
std::vector<ValueId> apply_region(Builder& builder, const Module& module, RegionId region,
                                  std::span<const ValueId> operands);
RegionId counted_region(Builder& builder, const Module& module, RegionId region);
// The results of a reduce by a copy of the region, or by the region counted: then the last operand and the last init are
// the flags, and the last result is one.
std::vector<ValueId> build_region_reduce(Builder& builder, const Module& module, RegionId region,
                                         std::span<const ValueId> operands, const Dims& dims, bool counted);

}  // namespace shardwise
