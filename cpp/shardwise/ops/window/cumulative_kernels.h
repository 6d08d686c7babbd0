// SPDX-License-Identifier: Apache-2.0
//
// Running sums, products, extrema and bits of an array along one dim, in one pass:
//
//   scan(context, x, y, 0, Prefix::kForward, Reducer::kSum, zero)      [[1, 2], [3, 4], [5, 6]] -> [[1, 2], [4, 6],
//   [9, 12]]
//
// The order of the combinations is that of the elements. Sums of float32 are kept in float64, sums of float64 with the
// parts that rounding cut off, so that a long sum is as exact as a short one.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

// Of float32, float64, integers or booleans; both arrays are row-major, and may be the same. `init` has one element.
void scan(KernelContext& context, const NdArray& from, const NdArray& to, size_t dim, Prefix prefix, Reducer reducer,
          const NdArray& init);

}  // namespace shardwise
