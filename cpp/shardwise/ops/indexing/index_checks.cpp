// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/indexing/index_checks.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

void expect_ascending(const InferContext& op, std::string_view name, DimSpan dims) {
  if (std::is_sorted(dims.begin(), dims.end())) return;
  op.fail_shape(str(name, " must be in ascending order"), str(name, " = ", dims), "sort it");
}

void expect_batching(const InferContext& op, const Indexing& indexing, const IndexingNames& names) {
  const IndexingDims& dims = indexing.dims;
  const auto indices_ndim = static_cast<int64_t>(indexing.indices.size());
  expect_dims(op, names.indices_batching, dims.indices_batching, indices_ndim);
  bool pairs = dims.operand_batching.size() == dims.indices_batching.size() &&
               !contains_dim(dims.indices_batching, dims.index_vector_dim);
  for (size_t i = 0; pairs && i < dims.operand_batching.size(); ++i) {
    pairs = indexing.operand[static_cast<size_t>(dims.operand_batching[i])] ==
            indexing.indices[static_cast<size_t>(dims.indices_batching[i])];
  }
  if (pairs) return;
  op.fail_shape("batching dims must come in pairs of equal size, none of them the index vector's",
                str(names.operand_batching, " = ", dims.operand_batching, " and ", names.indices_batching, " = ",
                    dims.indices_batching, " for ", op.operand_types_text()),
                "pair dims of the operand with dims of the indices");
}

}  // namespace

void expect_indexing(const InferContext& op, const Indexing& indexing, const IndexingNames& names) {
  const IndexingDims& dims = indexing.dims;
  const auto ndim = static_cast<int64_t>(indexing.operand.size());
  const auto indices_ndim = static_cast<int64_t>(indexing.indices.size());
  // One past the last dim is valid: each element is then an index vector of one component.
  if (dims.index_vector_dim < 0 || dims.index_vector_dim > indices_ndim) {
    op.fail_shape(str("index_vector_dim must be in [0, ", indices_ndim, "]"),
                  str(dims.index_vector_dim, " for ", op.operand_types_text()), "use the dim that holds index vectors");
  }
  expect_dims(op, str(names.collapsed, " and ", names.operand_batching), joined(dims.collapsed, dims.operand_batching),
              ndim);
  // A batching dim gets its index from its place in the batch, so it can have no component.
  expect_dims(op, str(names.index_map, " and ", names.operand_batching), joined(dims.index_map, dims.operand_batching),
              ndim);
  // StableHLO requires sorted lists; window_dims() relies on it to pair dims in order.
  expect_ascending(op, names.offset, dims.offset);
  expect_ascending(op, names.collapsed, dims.collapsed);
  expect_ascending(op, names.operand_batching, dims.operand_batching);
  expect_batching(op, indexing, names);
  const int64_t components =
      dims.index_vector_dim == indices_ndim ? 1 : indexing.indices[static_cast<size_t>(dims.index_vector_dim)];
  expect_length(op, names.index_map, dims.index_map, components);
  if (ndim != static_cast<int64_t>(dims.offset.size() + dims.collapsed.size() + dims.operand_batching.size())) {
    op.fail_shape(
        str("each dim of the operand must be in ", names.offset, ", ", names.collapsed, " or ", names.operand_batching),
        str(dims.offset, ", ", dims.collapsed, " and ", dims.operand_batching, " for ", op.operand_types_text()),
        "name every dim once");
  }
}

Dims batch_sizes(const Indexing& indexing) { return sizes_at(indexing.indices, indexing.indices_dims()); }

}  // namespace shardwise
