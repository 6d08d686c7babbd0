// SPDX-License-Identifier: Apache-2.0
//
// Stacks that a local program makes as a whole, although scans read them row by row and each row can be made alone:
//
//   %ws = all_gather %0        35 GiB              ops: the all_gather; source: %0, 70 MiB
//   %ys, … = scan %ws, …                           readers: both scans. If each gathers a row in its trips, one row of
//   … = scan %ys, %ws, …       backward            448 MiB is alive at a time, and all rows travel twice
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct MadeStack {
  ValueId stack, source;
  std::vector<OpId> ops = {};      // from the source to the stack, each with one operand and one result
  std::vector<size_t> dims = {};   // of the rows: in the source, then in the result of each op
  std::vector<OpId> readers = {};  // scans in the order of a run, and nothing else
  int64_t bytes = 0;               // freed
  int64_t ps = 0;                  // more of a run
};

TypeId row_type(const Module& local, TypeId stack, size_t dim);  // with one row along the dim

// Returns the stacks that are alive at the peak and free memory if they go, those with the least time for each byte first.
std::vector<MadeStack> made_stacks_at_peak(Module& local, const LiveWalk& walk, const Hardware& hardware);

// Returns all of them, in the order of the scans that read them first.
std::vector<MadeStack> made_stacks(Module& local, const LiveWalk& walk, const Hardware& hardware);

}  // namespace shardwise
