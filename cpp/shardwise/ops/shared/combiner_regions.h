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
//   region_argument_reducer(…)   whether it is the region of argmax (kMax) or argmin (kMin), as JAX writes it
#pragma once

#include <optional>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// Operands are tensors of one shape and as many scalars; the region combines two of each. The number of tensors.
size_t expect_reduction(const InferContext& op);
// Fails unless the region has only elementwise ops and constants, and uses nothing from around it.
void expect_elementwise_region(const InferContext& op);

// The reducer of (value, index) pairs. The larger (smaller) value wins; among equal values, the smaller index wins; a
// NaN on the left wins over everything.
std::optional<Reducer> region_argument_reducer(const Module& module, RegionId region);

}  // namespace shardwise
