// SPDX-License-Identifier: Apache-2.0
//
// Arrays in memory of the pool, and copies into them, where a view (base/array_view.h) does not serve:
//
//   a: shape {4, 2, 6} strides {24, 96, 4}
//   merge_groups(a, {2, 1})     // shape {8, 6}: a row-major copy, because dims 0 and 1 have no single stride
#pragma once

#include <cstddef>
#include <span>

#include "shardwise/base/ndarray.h"

namespace shardwise {

// Uninitialised; `order` has the dims from the outermost one in memory to the innermost.
NdArray empty_in_order(DType dtype, const Dims& shape, std::span<const size_t> order);
NdArray dense(const NdArray& array);  // itself, or a row-major copy
// Merges each run of `groups[i]` dims into one dim. Copies only when the merged dims have no single stride.
NdArray merge_groups(const NdArray& array, std::span<const size_t> groups);

// Copies on several threads where it pays; same shape and dtype, any strides, no overlap.
void copy_parallel(const NdArray& to, const NdArray& from);

// The value of memory that must not be read: NaN for floats, 0xA5… otherwise.
Scalar poison_value(DType dtype);

}  // namespace shardwise
