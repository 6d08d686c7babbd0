// SPDX-License-Identifier: Apache-2.0
//
// Examples with different starts are one gather or scatter, in which the new dim is a batching dim:
//
//   %1 = dynamic_slice %x, %i, %zero, sizes = [1, 4]      %x: tensor<6x4>, %i batched
//
//   %2 = reshape %i : tensor<8x1xi32>
//   %3 = gather %x, %2, start_index_map = [0], slice_sizes = [1, 4] : tensor<8x1x4>
//
// A dim that is read or replaced whole has no index. gather clamps its starts as dynamic_slice does; scatter drops what
// is out of bounds, so its starts are clamped first.
#include <algorithm>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/index_values.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/slicing/dynamic_slicing.h"

namespace shardwise {
namespace {

bool batched_from(const BatchContext& context, size_t first) {
  for (size_t i = first; i < context.op().operand_count(); ++i) {
    if (context.is_batched(i)) return true;
  }
  return false;
}

std::vector<ValueId> starts_after_zero(BatchContext& context, size_t first) {
  std::vector<ValueId> starts = operands_of(context, first);
  Builder& builder = context.builder();
  const DType dtype = starts.empty() ? DType::kI32 : builder.module().type(starts[0]).dtype;
  starts.insert(starts.begin(), build_scalar(builder, scalar_of(dtype, 0)));
  return starts;
}

// One index vector per example, with the starts of these dims.
ValueId index_vectors(BatchContext& context, size_t first, const Dims& dims) {
  Builder& builder = context.builder();
  const Dims column{context.size(), 1};
  std::vector<ValueId> columns;
  for (const int64_t dim : dims) {
    const size_t i = first + static_cast<size_t>(dim);
    columns.push_back(build_broadcast(builder, context.operand(i), column, context.is_batched(i) ? Dims{0} : Dims{}));
  }
  return build_concatenate(builder, columns, 1);
}

Dims dims_in_part(const Dims& whole, const Dims& part) {
  Dims dims;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    if (whole[dim] != part[dim]) dims.push_back(static_cast<int64_t>(dim));
  }
  return dims;
}

// The dimension numbers for index vectors of `indexed` dims, one per example.
IndexingDims numbers(int64_t ndim, const Dims& indexed, bool operand_is_batched) {
  IndexingDims dims;
  dims.offset = identity_dims(ndim, 1);
  dims.index_map = operand_is_batched ? shifted(indexed) : indexed;
  if (operand_is_batched) dims.operand_batching = dims.indices_batching = Dims(1, 0);
  dims.index_vector_dim = 1;
  return dims;
}

}  // namespace

void batch_dynamic_slice(BatchContext& context) {
  Builder& builder = context.builder();
  const Dims whole = context.op().operand_type(0).shape, sizes = context.op().result_type().shape;
  if (!batched_from(context, 1)) {
    const std::vector<ValueId> starts = starts_after_zero(context, 1);
    return context.set_result(
        0, build_dynamic_slice(builder, context.operand(0), starts, with_leading(context.size(), sizes)));
  }
  const Dims indexed = dims_in_part(whole, sizes);
  if (indexed.empty()) return context.set_result(0, context.batched(0));
  const bool batched = context.is_batched(0);
  const Dims slice = batched ? with_leading(std::min<int64_t>(context.size(), 1), sizes) : sizes;
  context.set_result(0, build_gather(builder, context.operand(0), index_vectors(context, 1, indexed),
                                     numbers(std::ssize(sizes), indexed, batched), slice));
}

void batch_dynamic_update_slice(BatchContext& context) {
  Builder& builder = context.builder();
  const Dims whole = context.op().operand_type(0).shape, part = context.op().operand_type(1).shape;
  if (!batched_from(context, 2)) {
    const std::vector<ValueId> starts = starts_after_zero(context, 2);
    return context.set_result(0, build_dynamic_update_slice(builder, context.batched(0), context.batched(1), starts));
  }
  const Dims indexed = dims_in_part(whole, part);
  if (indexed.empty()) return context.set_result(0, context.batched(1));
  Dims limits;
  for (const int64_t dim : indexed) {
    const auto d = static_cast<size_t>(dim);
    limits.push_back(whole[d] - part[d]);
  }
  const IndexingDims dims = numbers(std::ssize(whole), indexed, true);
  const ValueId starts = build_clamped(builder, index_vectors(context, 2, indexed), dims, limits);
  context.set_result(0, build_scatter(builder, context.batched(0), starts, context.batched(1), dims, {.replaces = true},
                                      {.unique_indices = true}));
}

}  // namespace shardwise
