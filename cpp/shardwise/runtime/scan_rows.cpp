// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/scan_rows.h"

#include <numeric>
#include <utility>
#include <vector>

#include "shardwise/runtime/array_view.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {

Shards row_of(const Shards& stack, size_t dim, int64_t row) {
  // The dims of the axes come before the local ones.
  if (stack.is_stacked()) return {stack.axes(), select(stack.stacked(), stack.axes().size() + dim, row)};
  std::vector<NdArray> rows;
  for (int64_t k = 0; k < stack.count(); ++k) rows.push_back(select(stack[k], dim, row));
  return {stack.axes(), std::move(rows)};
}

Shards empty_stack_of(const Shards& row, int64_t rows, size_t dim) {
  Dims shape = sizes_of(row.axes());
  const Dims local = row.local_shape();
  shape.insert(shape.end(), local.begin(), local.end());
  // The dims of the shards, from the slowest to the fastest.
  std::vector<size_t> order(shape.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (row.is_stacked() && is_gapless(row.stacked())) order = memory_order(row.stacked());
  // Rows are the outermost dim in memory, wherever the dim is in the shape: a trip then writes one block.
  Dims in_memory{rows};
  std::vector<size_t> place(shape.size());
  for (size_t i = 0; i < order.size(); ++i) {
    in_memory.push_back(shape[order[i]]);
    place[order[i]] = i + 1;
  }
  place.insert(place.begin() + static_cast<std::ptrdiff_t>(row.axes().size() + dim), 0);
  return {row.axes(), reorder_dims(pooled_empty(row.dtype(), std::move(in_memory)), place)};
}

void copy_row(const Shards& stack, size_t dim, int64_t row, const Shards& from) {
  const NdArray to = select(stack.stacked(), stack.axes().size() + dim, row);
  // One copy of all shards, split between threads by size rather than by shard.
  if (from.is_stacked()) return copy_parallel(to, from.stacked());
  const Shards rows(stack.axes(), to);
  for (int64_t k = 0; k < from.count(); ++k) copy_parallel(rows[k], from[k]);
}

Shards no_rows(const TensorType& local, const AxisList& axes) {
  Dims shape = sizes_of(axes);
  shape.insert(shape.end(), local.shape.begin(), local.shape.end());
  return {axes, pooled_empty(local.dtype, std::move(shape))};
}

}  // namespace shardwise
