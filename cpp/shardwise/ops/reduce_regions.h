// SPDX-License-Identifier: Apache-2.0
//
// The regions of reduce: functions of two rows of scalars, (a…, b…) → one row, built of elementwise ops.
//
//   affine maps x → m·x + c, one after the other (associative, not commutative):
//     ^bb0(%m0, %c0, %m1, %c1):
//       %0 = stablehlo.multiply %m0, %m1
//       %1 = stablehlo.multiply %c0, %m1
//       %2 = stablehlo.add %1, %c1
//       stablehlo.return %0, %2
//
//   region_argument_reducer(…)   whether it is the region of argmax (kMax) or argmin (kMin), in JAX's form
//   apply_region(…)              the region's ops on whole tensors, for graphs
//
// counted_region adds a boolean to the rows that marks whether a row counts, so that any region gets a neutral row (…,
// false):
//   (a, p) · (b, q) = (p and q ? a · b : p ? a : b, p or q)
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Throws unless the region contains only elementwise ops and constants, and captures no values.
void expect_elementwise_region(const InferContext& op);

// The reducer of (value, index) pairs. The larger (smaller) value wins; among equal values, the smaller index wins; a
// NaN on the left wins over everything.
std::optional<Reducer> region_argument_reducer(const Module& module, RegionId region);
RegionId build_argument_region(Builder& builder, Reducer reducer, DType value, DType index);

// Applies the region to `operands` (all of one shape) and returns its results. The region may be in another module with
// the same context.
std::vector<ValueId> apply_region(Builder& builder, const Module& module, RegionId region,
                                  std::span<const ValueId> operands);
RegionId counted_region(Builder& builder, const Module& module, RegionId region);

}  // namespace shardwise
