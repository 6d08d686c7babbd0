// SPDX-License-Identifier: Apache-2.0
//
// The rows of stacks that a counted loop reads and writes, one per trip. Scans are formed from them (scan.h), and
// gradients keep them row by row:
//
//   while(%i = 0, %ys = zeros) cond { %i < 10 }
//   do { %x = dynamic_slice %xs, %i                       a read: stack %xs, low 0
//        %p = dynamic_slice %xs, %i - 1
//        %q = select (%i = 0), %first, %p                 a read: stack %xs, low -1, %first instead of row 0
//        return %i + 1, dynamic_update_slice %ys, %y, %i }    a write: carry 1, row %y
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/ops/control/counted_loop.h"

namespace shardwise {

// The dim and the direction of rows: row i is that of trip i, or of trip `trips` - 1 - i.
struct Course {
  size_t dim = 0;
  bool is_reverse = false;
  friend auto operator<=>(const Course&, const Course&) = default;
};

// Values of the body that hold row `low` + i of a value from around it in the trip of row i.
struct RowRead {
  Course course;
  ValueId stack;
  int64_t low = 0;
  std::vector<ValueId> rows = {};  // with the dim, or without it
  ValueId instead = {};  // of the row that the stack lacks, the first or the last; with the dim, or without it
};

// A carry of rows. The body replaces another one in each trip, all of them in all trips, and reads none: neither the
// rows before the loop nor the order of the trips matter to it.
struct RowWrite {
  Course course;
  uint32_t carry = 0;
  ValueId row;  // with the dim, or without it
};

// The row of trip 0, and the step to that of the next trip.
LinearInteger row_of_trip(const Course& course, int64_t trips);

// The row that a dynamic_update_slice writes along the dim: the operand of the reshape that adds the dim, or the
// update.
ValueId written_row(const Module& module, OpId write, size_t dim);

std::vector<RowRead> find_row_reads(Module& module, const OpView& loop, const CountedLoop& counted);
std::vector<RowWrite> find_row_writes(Module& module, const OpView& loop, const CountedLoop& counted);

// Whether the dynamic_slice reads one row of a stack in each trip, and no row twice.
bool reads_distinct_rows(Module& module, const OpView& loop, const CountedLoop& counted, OpId slice);

}  // namespace shardwise
