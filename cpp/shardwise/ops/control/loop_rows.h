// SPDX-License-Identifier: Apache-2.0
//
// The reads and writes of a counted loop that are those of a scan (scan.h): of row i of a value in the trip of row i.
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

// A carry of rows. The body replaces another one in each trip, all of them in all trips, and reads none.
struct RowWrite {
  Course course;
  uint32_t carry = 0;
  ValueId row;  // with the dim, or without it
};

std::vector<RowRead> find_row_reads(Module& module, const OpView& loop, const CountedLoop& counted);
std::vector<RowWrite> find_row_writes(Module& module, const OpView& loop, const CountedLoop& counted);

}  // namespace shardwise
