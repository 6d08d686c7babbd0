// SPDX-License-Identifier: Apache-2.0
//
// The memory of one device in a run of a local program, without a plan or a runtime: buffers are freed at the last use,
// views hold what they are views of, chains and updates write in place, and a loop adds its trips up to the one from
// which they repeat.
//
//   %2 = dot_general %0, %1      allocates %2                     1 MiB + 4 MiB
//   %3 = reshape %2              a view of %2
//   %4 = tanh %3                 over %2: nothing else needs it   1 MiB + 4 MiB
//
// Never below the rehearsal of the runtime (Executable::memory). Above it where there are branches: of each op with
// branches, the results of all of them count, in a loop once for each trip that is walked. A nest of d loops is walked 2^d times.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "shardwise/analysis/memory_use.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// `donated`: arguments whose memory the run may free or reuse. OutOfMemoryError for values larger than the address space.
MemoryUse live_bytes(const Module& local, std::span<const size_t> donated = {});

struct LiveWalk {
  MemoryUse use;
  // By value: the operand whose memory it lies in, the last time it was made. None if it has its own.
  std::vector<ValueId> lies_in;
};
LiveWalk live_walk(const Module& local, std::span<const size_t> donated = {});

}  // namespace shardwise
