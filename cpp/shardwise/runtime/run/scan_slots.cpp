// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/scan_slots.h"

#include "shardwise/base/array_view.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// Views, without the dim.
Shards row_of(const Shards& stack, size_t dim, int64_t row) {
  // The dims of the axes come before the local ones.
  if (stack.is_stacked()) return {stack.axes(), select(stack.stacked(), stack.axes().size() + dim, row)};
  std::vector<NdArray> rows;
  for (int64_t k = 0; k < stack.count(); ++k) rows.push_back(select(stack[k], dim, row));
  return {stack.axes(), std::move(rows)};
}

// A stack stores its rows contiguously, in the memory order of the first row written, so adjacent shards of rows stay
// adjacent.
Shards empty_stack_of(const Shards& row, int64_t rows, size_t dim) {
  Dims shape = concatenated(sizes_of(row.axes()), row.local_shape());
  const size_t at = row.axes().size() + dim;
  // Rows that are a list of shards have no order in memory: row-major.
  const Dims strides = row_major_strides(shape, item_size(row.dtype()));
  const NdArray like = row.is_stacked() ? row.stacked() : NdArray(row.dtype(), shape, strides, nullptr, nullptr);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), rows);
  return {row.axes(), empty_in_order(row.dtype(), shape, stack_order(like, at))};
}

void copy_row(const Shards& stack, size_t dim, int64_t row, const Shards& from) {
  const NdArray to = select(stack.stacked(), stack.axes().size() + dim, row);
  // One copy of all shards, split between threads by size rather than by shard.
  if (from.is_stacked()) return copy_parallel(to, from.stacked());
  const Shards rows(stack.axes(), to);
  for (int64_t k = 0; k < from.count(); ++k) copy_parallel(rows[k], from[k]);
}

}  // namespace

void start_stacks(Slots& slots, const ScanRows& rows) {
  // In a loop around this one, the stack of the trip before may still be read: each run of the step gets a new one.
  for (const Move& write : rows.writes) slots[write.to] = Shards();
}

void read_rows(Slots& slots, const ScanRows& rows, int64_t row) {
  for (const ScanRows::Read& read : rows.reads) {
    const int64_t at = row + read.offset;
    // Offset -1 lacks row -1 in trip 0, offset +1 the row after the last one.
    const bool is_border = read.border && (at < 0 || at == slots[read.from].local_shape()[rows.dim]);
    slots.set(read.to, is_border ? slots[*read.border] : row_of(slots[read.from], rows.dim, at));
  }
}

void write_rows(Slots& slots, const ScanRows& rows, int64_t trips, int64_t row) {
  for (const Move& write : rows.writes) {
    const Shards value = slots[write.from].along(slots.axes(write.to));
    Shards& stack = slots[write.to];
    // Allocated by the first row, because only then the memory order of the rows is known.
    if (stack.axes().empty() && stack.stacked().data() == nullptr) {
      slots.label_allocations(write.to);
      stack = empty_stack_of(value, trips, rows.dim);
    }
    if (!leaves_out(bytes_of(stack) / stack.count())) copy_row(stack, rows.dim, row, value);
    if (write.is_last) slots[write.from] = Shards();
  }
}

void finish_stacks(Slots& slots, const ScanRows& rows, int64_t trips) {
  for (const Move& write : rows.writes) {
    if (trips == 0) {
      const AxisList& axes = slots.axes(write.to);
      const TensorType& local = slots.type(write.to);
      slots[write.to] = Shards(axes, pooled_empty(local.dtype, concatenated(sizes_of(axes), local.shape)));
    }
    slots.poison_padding(write.to);
  }
}

}  // namespace shardwise
