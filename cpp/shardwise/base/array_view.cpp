// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/array_view.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

NdArray with_dims(const NdArray& array, Dims shape, Dims strides) {
  return {array.dtype(), std::move(shape), std::move(strides), array.data(), array.owner()};
}

}  // namespace

NdArray split_dim(const NdArray& array, size_t dim, DimSpan sizes) {
  check_internal(element_count(sizes) == array.shape()[dim], "split_dim: the sizes multiply to the dim's");
  Dims shape = array.shape();
  Dims strides = array.strides();
  // The innermost part keeps the dim's stride: size 6 and stride 4, split into {2, 3}, have the strides {12, 4}.
  const Dims inner = row_major_strides(sizes, strides[dim]);
  const auto at = static_cast<std::ptrdiff_t>(dim);
  shape.erase(shape.begin() + at);
  strides.erase(strides.begin() + at);
  shape.insert(shape.begin() + at, sizes.begin(), sizes.end());
  strides.insert(strides.begin() + at, inner.begin(), inner.end());
  return with_dims(array, std::move(shape), std::move(strides));
}

std::optional<NdArray> merge_dims(const NdArray& array, size_t begin, size_t end) {
  Dims shape = array.shape();
  Dims strides = array.strides();
  int64_t size = 1;
  int64_t stride = item_size(array.dtype());
  const bool is_empty = array.size() == 0;  // then no address depends on strides, so any will do
  // From the last dim to the first. A dim of size 1 may have any stride; broadcast dims merge, as 0 = 0 * size.
  for (size_t d = end; d-- > begin;) {
    if (shape[d] != 1) {
      if (size == 1) {
        stride = strides[d];
      } else if (strides[d] != stride * size && !is_empty) {
        return std::nullopt;
      }
    }
    size *= shape[d];
  }
  const auto first = static_cast<std::ptrdiff_t>(begin);
  const auto last = static_cast<std::ptrdiff_t>(end);
  shape.erase(shape.begin() + first, shape.begin() + last);
  strides.erase(strides.begin() + first, strides.begin() + last);
  shape.insert(shape.begin() + first, size);
  strides.insert(strides.begin() + first, stride);
  return with_dims(array, std::move(shape), std::move(strides));
}

NdArray reorder_dims(const NdArray& array, std::span<const size_t> order) {
  check_internal(order.size() == array.shape().size(), "reorder_dims: one entry per dim");
  Dims shape;
  Dims strides;
  shape.reserve(order.size());
  strides.reserve(order.size());
  for (size_t d : order) {
    shape.push_back(array.shape()[d]);
    strides.push_back(array.strides()[d]);
  }
  return with_dims(array, std::move(shape), std::move(strides));
}

NdArray select(const NdArray& array, size_t dim, int64_t index) {
  NdArray view = array.sliced(static_cast<int64_t>(dim), index, 1);
  Dims shape = view.shape();
  Dims strides = view.strides();
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(dim));
  return with_dims(view, std::move(shape), std::move(strides));
}

NdArray insert_dim(const NdArray& array, size_t dim, int64_t size) {
  Dims shape = array.shape();
  Dims strides = array.strides();
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), size);
  strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), 0);
  return with_dims(array, std::move(shape), std::move(strides));
}

std::vector<size_t> memory_order(const NdArray& array) {
  std::vector<size_t> order(array.shape().size());
  std::iota(order.begin(), order.end(), size_t{0});
  Dims steps = array.strides();
  for (size_t d = steps.size(); d-- > 0;) {
    // By magnitude, because reversed dims run along memory, too. A broadcast dim, of stride 0, is around the next dim.
    const bool is_broadcast = steps[d] == 0 && d + 1 < steps.size();
    steps[d] = is_broadcast ? steps[d + 1] * array.shape()[d + 1] : std::abs(steps[d]);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return steps[a] > steps[b]; });
  return order;
}

NdArray in_shape_order(const NdArray& in_memory, std::span<const size_t> order) {
  std::vector<size_t> places(order.size());
  for (size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
  return reorder_dims(in_memory, places);
}

std::vector<size_t> stack_order(const NdArray& row, size_t dim) {
  std::vector<size_t> order(row.shape().size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (is_gapless(row)) order = memory_order(row);
  for (size_t& other : order) other += other >= dim ? 1 : 0;
  order.insert(order.begin(), dim);
  return order;
}

bool is_gapless(const NdArray& array) {
  return array.is_contiguous() || reorder_dims(array, memory_order(array)).is_contiguous();
}

std::optional<NdArray> merged_view(const NdArray& array, std::span<const size_t> groups) {
  std::optional<NdArray> merged = array;
  size_t end = array.shape().size();
  // From the last group to the first, so that the positions of groups before a merged one stay valid.
  for (size_t i = groups.size(); i-- > 0 && merged;) {
    const size_t begin = end - groups[i];
    if (groups[i] != 1) merged = merge_dims(*merged, begin, end);
    end = begin;
  }
  return merged;
}

}  // namespace shardwise
