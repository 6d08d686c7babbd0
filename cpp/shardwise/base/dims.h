// SPDX-License-Identifier: Apache-2.0
//
// Shapes and index lists. `Dims` owns its values and `DimSpan` refers to them. Both hold int64 sizes, major dim first.
//
//   row_major_strides({4, 3, 2}, 4)  ->  {24, 8, 4}      (bytes, for 4-byte items)
//   element_count({4, 0, 2})         ->  0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwise {

using Dims = std::vector<int64_t>;
using DimSpan = std::span<const int64_t>;

int64_t element_count(DimSpan shape);
Dims row_major_strides(DimSpan shape, int64_t item_size);
Dims to_dims(DimSpan dims);
bool equal(DimSpan a, DimSpan b);

// `b` must be positive. They correct the result of `/`, which rounds towards zero, because `a + b - 1` can overflow.
inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
inline int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Advances `index` to the next position of `shape` in row-major order. Returns false after the last one.
bool next_index(std::span<int64_t> index, DimSpan shape);

}  // namespace shardwise
