// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dims.h"

#include <algorithm>

namespace shardwise {

int64_t element_count(DimSpan shape) {
  // Rank 0 is one element, the empty product: a scalar has a buffer like any array.
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

Dims row_major_strides(DimSpan shape, int64_t item_size) {
  Dims strides(shape.size());
  int64_t stride = item_size;
  for (size_t d = shape.size(); d-- > 0;) {
    // A dim of size 0 makes the strides of all dims before it 0. No element exists that could be read through them.
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

Dims to_dims(DimSpan dims) { return Dims(dims.begin(), dims.end()); }

bool equal(DimSpan a, DimSpan b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

bool next_index(std::span<int64_t> index, DimSpan shape) {
  for (size_t d = shape.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    // An odometer: {0, 2} of shape {2, 3} becomes {1, 0}. After the last index all digits are 0 again, so the caller
    // can reuse `index` without a reset.
    index[d] = 0;
  }
  return false;
}

}  // namespace shardwise
