// SPDX-License-Identifier: Apache-2.0
//
// When each task of a region starts, on streams that each do one thing at a time: stream 0 computes, the others are the
// tiers of links.
//
//   task             stream    takes    after     starts
//   0  all_gather    1         30                  0
//   1  kernel        0         20                  0
//   2  kernel        0         10       0, 1      30      waited 10 for task 0: so much of it is exposed
//   3  all_reduce    1         25       2         40      nothing is left to compute: 25 of it are exposed
//   length 65, of which stream 0 computes 30
//
// A stream does its tasks in the order in which they are issued. Kernels are issued in the order of the graph. A transfer
// that waits for a kernel is issued after it, at once or a part of the way to the first kernel that needs it, so that one that
// is needed sooner can pass. One that waits for none, as a gather of weights, is issued some kernels before it is needed. The
// part and the number are the best of a few, and of the order of the program. For one order, no start is earlier if any task takes longer: so that is true
// for the best of them, too, and more work never takes less time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/analysis/schedule/task_graph.h"

namespace shardwise {

struct StreamStage {
  uint32_t stream = 0;
  int64_t ps = 0;
};

struct TaskTime {
  std::vector<StreamStage> stages = {};  // one after the other
  bool needs_all_streams = false;        // of a loop, which uses all of them: nothing else runs beside it
  int64_t ps() const;
};

struct StreamSchedule {
  int64_t length = 0;
  std::vector<int64_t> start;                // by task, until all that it waits for is done and its stream is free
  std::vector<std::vector<int64_t>> stages;  // by task: when each of its stages starts, which waits for its own stream
  // By task: how long stream 0 waited for it. It also waits for what is on the stream of such a transfer before it.
  std::vector<int64_t> exposed;
};

// With the best of a few orders. The sum of what stream 0 does and of all that is exposed is the length.
StreamSchedule schedule(const TaskGraph& graph, std::span<const TaskTime> times, size_t streams);

// The longest chain of tasks that wait for each other.
int64_t critical_path(const TaskGraph& graph, std::span<const TaskTime> times);
// The longest chain from a carry to what makes it for the next trip: no trip can start sooner after the one before.
struct RecurrencePath {
  int64_t length = 0;
  std::vector<uint32_t> tasks;  // the last one first
};
RecurrencePath recurrence_path(const TaskGraph& graph, std::span<const TaskTime> times);

}  // namespace shardwise
