// SPDX-License-Identifier: Apache-2.0
//
// How long one run of a local program takes on some hardware, and what takes it.
//
//   estimate_step(local, h100)
//     lower      the longest chain of tasks, or the busiest stream: no launches, transfers use all tiers at once
//     estimate   the schedule of stream_schedule.h
//     upper      one task after the other, attention unfused
//     rows       each kernel and transfer: its stream, start, time, what it is bound by, and what of it is exposed
//
// Regions are scheduled once, whatever their trips:
//
//   %1 = scan … 24 trips { all_gather %row; dot_general; … }
//     one trip                     1.9 ms      its schedule, alone
//     each further trip            1.4 ms      the busiest stream, or the longest chain from a carry to its next value:
//                                              transfers that wait for nothing of the trip before run beside it
//     all                          1.9 + 23 · 1.4 ms
//
// A branch counts with its share, a loop that does not count with its assumed trips (executions.h). Nothing runs beside a
// loop or a branch. The kernels of all rows, in all executions, and what is exposed sum up to the estimate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/analysis/op_time.h"
#include "shardwise/cost/collective_time.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct EstimateRow {
  OpId op;                       // the one of most operations
  std::vector<OpId> ops;         // of a kernel; a transfer is one op
  Executions executions;         // in one run
  int64_t start_ps = 0;          // of the first one
  int64_t ps = 0;                // of one
  double exposed_ps = 0;         // in all: how long the compute stream waits for this transfer
  OpTime kernel = {};            // of a kernel
  CollectiveTime transfer = {};  // of a transfer
  bool is_transfer = false;
  bool is_attention = false;
  int64_t bytes = 0;  // of memory, or received
};

// The trips of a loop after the first one, of which rows have the starts.
struct FurtherTrips {
  OpId loop;
  int64_t start_ps = 0, ps = 0;
  int64_t trips = 0;  // of the loop
};

struct StepEstimate {
  int64_t lower_ps = 0, estimate_ps = 0, upper_ps = 0;
  std::vector<EstimateRow> rows;  // in the order of their starts
  std::vector<FurtherTrips> further;
};

// Throws MeshError if the hardware joins fewer devices than the mesh of a collective has.
StepEstimate estimate_step(const Module& local, const Hardware& hardware);

}  // namespace shardwise
