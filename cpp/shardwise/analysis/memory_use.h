// SPDX-License-Identifier: Apache-2.0
//
// Sums up allocations in the order of a run: its peak, and what is alive then.
//
//   %x                          1 MiB   ┐
//   %3 = dot_general %x, %w     4 MiB   ├ at the peak: 9 MiB
//   %4 = exponential %y         4 MiB   ┘
//
// The events are those of a rehearsal of the runtime (runtime/memory/allocation_log.h), or of live_bytes.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/ir/ids.h"

namespace shardwise {

// A buffer is allocated, or freed.
struct MemoryEvent {
  uint32_t label;
  int64_t bytes;  // negative: freed
};

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
  ValueId peak_value;                // whose buffer makes the peak
  std::vector<LiveBuffers> at_peak;  // by value, in order of the first allocation
  std::vector<LiveMoment> timeline;  // of long runs the highest and the lowest of moments that follow each other
  int64_t steps = 0;                 // that were walked to know this
};

// The labels of the events are values. Sets peak_bytes, the timeline, and at_peak: at the first moment of the highest
// sum.
MemoryUse memory_use(std::span<const MemoryEvent> events);

}  // namespace shardwise
