// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/index_values.h"

#include <algorithm>

#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

bool has_vector_dim(const TensorType& indices, const IndexingDims& dims) {
  return dims.index_vector_dim < indices.ndim();
}

// One number per component, broadcast to the shape of the indices: int8 indices into 512 rows have the bound 127, which
// is their largest number.
ValueId build_bounds(Builder& builder, const TensorType& indices, const IndexingDims& dims, DimSpan limits) {
  const bool same = std::all_of(limits.begin(), limits.end(), [&](int64_t limit) { return limit == limits[0]; });
  // A splat is one element in memory and in the text. No components: there is nothing to bound.
  if (same || !has_vector_dim(indices, dims)) {
    const int64_t limit = limits.empty() ? 0 : limits[0];
    return build_splat(builder, indices.shape, capped(indices.dtype, limit));
  }
  const NdArray row = NdArray::empty(indices.dtype, {static_cast<int64_t>(limits.size())});
  for (size_t i = 0; i < limits.size(); ++i) {
    store(capped(indices.dtype, limits[i]), row.data() + static_cast<int64_t>(i) * item_size(indices.dtype));
  }
  return build_broadcast(builder, build_constant(builder, row), indices.shape, Dims{dims.index_vector_dim});
}

}  // namespace

Dims start_limits(const Indexing& indexing) {
  Dims limits;
  for (const int64_t dim : indexing.dims.index_map) {
    const auto d = static_cast<size_t>(dim);
    limits.push_back(indexing.operand[d] - indexing.slice[d]);
  }
  return limits;
}

ValueId build_clamped(Builder& builder, ValueId indices, const IndexingDims& dims, DimSpan limits) {
  const TensorType type = builder.module().type(indices);
  const ValueId low = build_splat(builder, type.shape, scalar_of(type.dtype, 0));
  return builder.create("stablehlo.clamp", {low, indices, build_bounds(builder, type, dims, limits)});
}

ValueId build_clamped_indices(Builder& builder, ValueId indices, const Indexing& indexing) {
  return build_clamped(builder, indices, indexing.dims, start_limits(indexing));
}

ValueId build_inside(Builder& builder, ValueId indices, const IndexingDims& dims, DimSpan limits) {
  const TensorType type = builder.module().type(indices);
  // An index is inside if clamping leaves it as it is: one comparison for both ends.
  const ValueId same = build_compare(builder, "EQ", indices, build_clamped(builder, indices, dims, limits));
  if (!has_vector_dim(type, dims)) return same;
  // With one component, dropping the dim needs no reduction.
  if (limits.size() != 1) return build_reduce(builder, same, {}, Reducer::kAnd, Dims{dims.index_vector_dim});
  Dims shape = type.shape;
  shape.erase(shape.begin() + dims.index_vector_dim);
  return build_reshape(builder, same, shape);
}

ValueId build_shifted(Builder& builder, ValueId indices, const IndexingDims& dims,
                      const std::vector<ValueId>& offsets) {
  const TensorType type = builder.module().type(indices);
  ValueId offset;
  if (offsets.size() == 1 || !has_vector_dim(type, dims)) {
    offset = build_broadcast(builder, offsets[0], type.shape, {});
  } else {
    std::vector<ValueId> parts;
    // A vector of scalars, one for each component.
    for (const ValueId part : offsets) parts.push_back(build_reshape(builder, part, Dims{1}));
    offset = build_broadcast(builder, build_concatenate(builder, parts, 0), type.shape, Dims{dims.index_vector_dim});
  }
  return builder.create("stablehlo.subtract", {indices, offset});
}

ValueId build_out_mask(Builder& builder, ValueId per_vector, const Indexing& indexing, DimSpan out_shape) {
  return build_broadcast(builder, per_vector, out_shape, indexing.batch_dims());
}

}  // namespace shardwise
