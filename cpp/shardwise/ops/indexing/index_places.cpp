// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/index_places.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/strided_kernels.h"

namespace shardwise {

IndexVectors::IndexVectors(KernelContext& context, const NdArray& indices, const IndexingDims& dims) {
  const bool has_vector_dim = dims.index_vector_dim < indices.ndim();
  Dims order = other_dims(indices.ndim(), DimSpan(&dims.index_vector_dim, 1));
  batch_shape_ = sizes_at(indices.shape(), order);
  // The vector dim becomes the innermost one, so that the components of a vector are adjacent.
  if (has_vector_dim) order.push_back(dims.index_vector_dim);
  count_ = element_count(batch_shape_);
  components_ = static_cast<int64_t>(dims.index_map.size());
  // The conversion wraps uint64 numbers beyond int64 to negative ones, which would be clamped to the wrong end.
  const bool may_exceed = indices.dtype() == DType::kU64;
  array_ = contiguous_array(context, permuted(converted(context, indices, DType::kI64), order));
  auto* numbers = reinterpret_cast<int64_t*>(array_.data());
  for (int64_t i = 0; may_exceed && i < array_.size(); ++i) {  // the conversion has made a new array
    if (numbers[i] < 0) numbers[i] = std::numeric_limits<int64_t>::max();
  }
  numbers_ = numbers;
}

PairedDims PairedDims::merged() const {
  std::vector<Dim> sorted = dims;
  std::erase_if(sorted, [](const Dim& dim) { return dim.size == 1; });
  // Order and runs are those of the second array, which is the one that is written.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.second) > std::abs(b.second); });
  PairedDims result;
  for (const Dim& dim : sorted) {
    if (!result.dims.empty()) {
      Dim& outer = result.dims.back();
      // (4, 32, 32) around (8, 4, 4) is one dim (32, 4, 4): the outer strides are those of 8 inner elements.
      if (outer.first == dim.first * dim.size && outer.second == dim.second * dim.size) {
        outer = {outer.size * dim.size, dim.first, dim.second};
        continue;
      }
    }
    result.dims.push_back(dim);
  }
  return result;
}

}  // namespace shardwise
