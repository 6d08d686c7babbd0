// SPDX-License-Identifier: Apache-2.0
//
// The memory of a run, known before it. The executor rehearses the plan (allocation_log.h), so that reuse of dead
// buffers, views and stacks count as they do in a run:
//
//   %x                          1 MiB   ┐
//   %3 = dot_general %x, %w     4 MiB   ├ at the peak: 9 MiB
//   %4 = exponential %y         4 MiB   ┘
//
// A loop is rehearsed until its trips repeat, and once for each state of its inputs (run/rehearsed_loops.h). Where there are branches, the largest peak counts: the rehearsal begins
// with the first branch of each op, and tries every other branch of one op after the other, keeping what is larger.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/ids.h"
#include "shardwise/runtime/memory/allocation_log.h"

namespace shardwise {

struct LiveBuffers {
  ValueId value;  // a result of the op that allocated them, or an argument
  int64_t bytes = 0;
};

// A moment of a run: the value whose buffer is allocated or freed, and all that is alive then.
struct LiveMoment {
  ValueId value;
  int64_t bytes = 0;
};

struct MemoryUse {
  int64_t peak_bytes = 0;
  int64_t argument_bytes = 0;        // at the start of the run
  int64_t result_bytes = 0;          // at its end, without arguments that the caller keeps
  std::vector<LiveBuffers> at_peak;  // by value, in order of the first allocation
  std::vector<LiveMoment> timeline;  // of long runs the highest and the lowest of moments that follow each other
  int64_t steps = 0;                 // that the rehearsal ran: linear in the depth of a nest of loops
};

struct MemoryOptions {
  bool per_device = true;            // or of all devices of the virtual mesh together, in this process
  std::vector<size_t> donated = {};  // arguments whose memory the run may free or reuse
};

// The labels of the events are values. Sets peak_bytes, the timeline, and at_peak: at the first moment of the highest sum.
MemoryUse memory_use(std::span<const AllocationLog::Event> events);

}  // namespace shardwise
