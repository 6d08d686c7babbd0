// SPDX-License-Identifier: Apache-2.0
//
// Cumulative sums, products, extrema and bitwise ops of an array along one dim, in one pass:
//
//   scan(context, x, y, 0, Prefix::kForward, Reducer::kSum, zero)
//          [[1, 2], [3, 4], [5, 6]]  ->  [[1, 2], [4, 6], [9, 12]]
//
// Elements are combined in order. Sums of float32 accumulate in float64. Sums of float64 are compensated: they carry
// the parts that rounding cut off, so a long sum is as exact as a short one.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

// Whether a reducer has one: complex numbers have no order here.
bool has_scan(DType dtype, Reducer reducer);
// For float32, float64, complex numbers, whole-byte integers and booleans. Both arrays are row-major, and may be the
// same. `init` has one element.
void scan(KernelContext& context, const NdArray& from, const NdArray& to, size_t dim, Prefix prefix, Reducer reducer,
          const NdArray& init);

}  // namespace shardwise
