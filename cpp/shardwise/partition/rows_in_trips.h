// SPDX-License-Identifier: Apache-2.0
//
// Lowers the peak of a local program's memory where a stack is made as a whole although scans read it row by row
// (choice/memory/made_stacks.h): each scan makes a row in the trip that reads it.
//
//   %ws = all_gather %0                           … = scan %0 {
//   … = scan %ws {                       ->       ^bb0(%row):
//   ^bb0(%w): … }                                   %w = all_gather %row … }
#pragma once

#include <optional>
#include <span>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/choice/memory/made_stacks.h"
#include "shardwise/choice/memory/memory_plan.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// Writes the one that takes the least time for its bytes. None if there is no such stack at the peak.
std::optional<RepeatedRow> make_rows_in_trips(Module& local, const LiveWalk& walk, const Hardware& hardware);

// The scan that reads all of these stacks first makes their rows in its trips and returns them as stacks for the other readers:
// nothing is made twice.
void make_rows_in_first_scan(Module& local, std::span<const MadeStack> stacks);

}  // namespace shardwise
