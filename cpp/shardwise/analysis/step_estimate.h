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

// A row on a stream, in its first execution.
struct RowStage {
  uint32_t stream = 0;  // 0 computes, the others are tiers
  double start_ps = 0, ps = 0;
};

struct EstimateRow {
  OpId op;                       // the one of most operations
  std::vector<OpId> ops;         // of a kernel; a transfer is one op
  Executions executions;         // in one run
  double start_ps = 0;           // of the first one
  int64_t ps = 0;                // of one
  double exposed_ps = 0;         // in all: how long the compute stream waits for this transfer
  std::vector<RowStage> stages;  // one of a kernel, one for each tier of a transfer; as long as spans (StepSpan) say
  OpTime kernel = {};            // of a kernel
  CollectiveTime transfer = {};  // of a transfer
  bool is_transfer = false;
  bool is_attention = false;
  int64_t bytes = 0;  // of memory, or received
};

// A part of the step that runs regions, or executions that have no rows of their own:
//
//   kLoop       [ while                                                                     ]
//   rows        [ condition ][ first trip ]
//   kMoreTrips                             [ 15 more trips    ]
//   kMoreConditions                                            [ its condition, 16 times more ]
//
//   kBranches   [ case                                ]
//   kBranch     [ branch 0, 3/4    ][ branch 1, 1/4   ]
//   rows        [ dot ][ tanh      ][ dot             ]      each as long as its share of the branch
//
// Rows and the last three kinds, with the waits between them, are the whole step: they end where the estimate does.
struct StepSpan {
  enum class Kind : uint8_t { kLoop, kBranches, kBranch, kCall, kMoreTrips, kMoreConditions, kCalledAgain };
  Kind kind = Kind::kLoop;
  OpId op;  // that has the regions
  double start_ps = 0, ps = 0;
  int64_t number = 0;  // the trips of a loop; how many more trips or conditions; which branch
};

struct StepEstimate {
  int64_t lower_ps = 0, estimate_ps = 0, upper_ps = 0;
  std::vector<EstimateRow> rows;  // in the order of their starts
  std::vector<StepSpan> spans;    // what is inside another one stands behind it
};

// Throws MeshError if the hardware joins fewer devices than the mesh of a collective has.
StepEstimate estimate_step(const Module& local, const Hardware& hardware);

}  // namespace shardwise
