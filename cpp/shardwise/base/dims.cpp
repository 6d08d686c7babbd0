// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dims.h"

#include <algorithm>

namespace shardwise {

int64_t element_count(DimSpan shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

Dims row_major_strides(DimSpan shape, int64_t item_size) {
  Dims strides(shape.size());
  int64_t stride = item_size;
  for (size_t d = shape.size(); d-- > 0;) {
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
    index[d] = 0;
  }
  return false;
}

}  // namespace shardwise
