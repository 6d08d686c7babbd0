// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/scan_slots.h"

#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/scan_rows.h"

namespace shardwise {

void start_stacks(Slots& slots, const ScanRows& rows) {
  // In a loop around this one, the stack of the trip before may still be read: each run of the step gets a new one.
  for (const ScanRows::Write& write : rows.writes) slots[write.to] = Shards();
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
  for (const ScanRows::Write& write : rows.writes) {
    const Shards value = slots[write.from].along(slots.axes(write.to));
    Shards& stack = slots[write.to];
    // Allocated by the first row, because only then the memory order of the rows is known (scan_rows.h).
    if (stack.axes().empty() && stack.stacked().data() == nullptr) {
      slots.label_allocations(write.to);
      stack = empty_stack_of(value, trips, rows.dim);
    }
    if (!leaves_out(bytes_of(stack) / stack.count())) copy_row(stack, rows.dim, row, value);
    if (write.is_last) slots[write.from] = Shards();
  }
}

void finish_stacks(Slots& slots, const ScanRows& rows, int64_t trips) {
  for (const ScanRows::Write& write : rows.writes) {
    if (trips == 0) slots[write.to] = no_rows(slots.type(write.to), slots.axes(write.to));
    slots.poison_padding(write.to);
  }
}

}  // namespace shardwise
