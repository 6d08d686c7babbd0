// SPDX-License-Identifier: Apache-2.0
//
// Views of strided arrays with split, merged and reordered dims. With them, gathers, exchanges and permutations of
// shards need no copies.
//
//   a: shape {2, 4, 6} strides {96, 24, 4}
//   split_dim(a, 1, {2, 2})     // shape {2, 2, 2, 6}
//   merge_dims(a, 0, 2)         // shape {8, 6}: dim 1 follows dim 0 in memory
//   reorder_dims(a, {1, 0, 2})  // shape {4, 2, 6}; merge_dims(…, 0, 2) of this is none: there is no single stride
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "shardwise/base/ndarray.h"

namespace shardwise {

NdArray split_dim(const NdArray& array, size_t dim, DimSpan sizes);  // the product of `sizes` is the dim's size
std::optional<NdArray> merge_dims(const NdArray& array, size_t begin, size_t end);  // [begin, end) to one; none: size 1
// Merges each run of `groups[i]` dims into one dim; none where the merged dims have no single stride.
std::optional<NdArray> merged_view(const NdArray& array, std::span<const size_t> groups);
NdArray reorder_dims(const NdArray& array, std::span<const size_t> order);  // result dim i is dim order[i]
NdArray select(const NdArray& array, size_t dim, int64_t index);            // drops that dim
NdArray insert_dim(const NdArray& array, size_t dim, int64_t size);         // stride 0: the same for every index

std::vector<size_t> memory_order(const NdArray& array);  // dims from the largest stride to the smallest
// Dim i of `in_memory` is dim order[i] of the result.
NdArray in_shape_order(const NdArray& in_memory, std::span<const size_t> order);
// The dims of a stack of such rows along `dim`, from the outermost in memory: rows lie one after the other, wherever the
// dim is in the shape, and each in the memory order of `row`.
std::vector<size_t> stack_order(const NdArray& row, size_t dim);
bool is_gapless(const NdArray& array);  // every byte between its first and last element is in one

}  // namespace shardwise
