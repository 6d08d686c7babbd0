// SPDX-License-Identifier: Apache-2.0
//
// Computations of gather and scatter on index tensors, as ops. An index tensor holds index vectors along one dim. All
// bounds are per component.
//
//   ids: tensor<64x1xi32>, rows of a table with 512 rows
//   build_clamped_indices(b, ids, indexing)          clamp(0, ids, 511)
//   build_inside(b, ids, indexing.dims, {511})       ids == clamp(0, ids, 511), as tensor<64xi1>
//   build_out_mask(b, inside, indexing, shape)       … repeated to the shape of out (tensor<64x32xi1>)
#pragma once

#include <vector>

#include "shardwise/ops/indexing/indexing.h"

namespace shardwise {

// The largest start of each component for which the slice is in bounds.
Dims start_limits(const Indexing& indexing);

// Clamps each component to [0, limit], in the dtype of the indices. A limit that the dtype cannot hold never applies.
ValueId build_clamped(Builder& builder, ValueId indices, const IndexingDims& dims, DimSpan limits);
ValueId build_clamped_indices(Builder& builder, ValueId indices, const Indexing& indexing);
// Whether all components are in [0, limit], as one element per index vector.
ValueId build_inside(Builder& builder, ValueId indices, const IndexingDims& dims, DimSpan limits);
// Subtracts one scalar from each component. All have the dtype of the indices.
ValueId build_shifted(Builder& builder, ValueId indices, const IndexingDims& dims, const std::vector<ValueId>& offsets);
// Broadcasts one element per index vector to the shape of out.
ValueId build_out_mask(Builder& builder, ValueId per_vector, const Indexing& indexing, DimSpan out_shape);

}  // namespace shardwise
