// SPDX-License-Identifier: Apache-2.0
//
// The rows of a scan in the slots of a run: before a trip, a row of each input becomes a view in a slot of its own;
// after it, a row of each output is copied to its stack.
//
//   scan of 3 rows: %x = row of %xs, %y to a row of %ys
//     start_stacks          %ys is empty
//     read_rows 0           %x = %xs[0], a view
//     … the body …
//     write_rows 0          %ys = a new stack of 3 rows; %ys[0] = %y
#pragma once

#include "shardwise/runtime/run/slots.h"

namespace shardwise {

void start_stacks(Slots& slots, const ScanRows& rows);
void read_rows(Slots& slots, const ScanRows& rows, int64_t row);
void write_rows(Slots& slots, const ScanRows& rows, int64_t trips, int64_t row);
void finish_stacks(Slots& slots, const ScanRows& rows, int64_t trips);

}  // namespace shardwise
