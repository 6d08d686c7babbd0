// SPDX-License-Identifier: Apache-2.0
//
// Keeps the memory of one device within a limit (CompileOptions::memory_limit): values that are alive at the peak are
// gathered again or computed again where they are needed, those first that take the least time for the memory.
//
//   limit 6 MiB                           %h: 4 MiB, alive from the first op to the last one
//   %h = tanh %x                          %h = tanh %x
//   …                               ->    …
//   return dot_general %h, %z             %h_again = tanh %x {shardwise.again = 1 : i64}
//                                         return dot_general %h_again, %z
//
// Placements stay, and copies compute the same bits. Stacks that are made as a whole for scans are made row by row
// (rows_in_trips.h) if that takes less time. Where all this is not enough, products run in loops that hold one block of an
// operand at a time (window_at_peak.h). The memory is that of analysis/live_bytes.h: after each round it is measured
// again, and the next peak is looked at. OutOfMemoryError, with the smallest limit that was found, for one that cannot be
// kept.
#pragma once

#include "shardwise/choice/memory/memory_plan.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// A local module. If the limit cannot be kept, it stays as it is, and the peak of the plan is the smallest limit that can.
MemoryPlan fit_in_memory(Module& module, const PassContext& context);

Module rematerialize(Module module, PassContext& context);
inline constexpr Pass kRematerialize{
    .name = "rematerialize",
    .doc = "compute values again that would not fit in the memory limit",
    .run = rematerialize,
    .needs_runnable = true,
    .takes = {.first = Stage::kLocal},
    .reads = option("memory_limit") | option("hardware") | option("donated") | option("windowed_einsum")};

}  // namespace shardwise
