// SPDX-License-Identifier: Apache-2.0
//
// Hides transfers of stacks behind the scan that reads them first. Nothing runs beside a loop, but in each trip a transfer
// runs beside the products of the trip before:
//
//   %ws = all_gather %0                     %ys, %ws = scan %0 {
//   %ys = scan %ws {                        ^bb0(%row):
//   ^bb0(%w): … }                    ->       %w = all_gather %row
//   … = scan %ys, %ws {…}                     … return …, %w }
//                                           … = scan %ys, %ws {…}
//
// The bytes are the same, in as many messages as there are trips, and so is the memory, but for a row or two. It stays if the
// estimate of the program (analysis/step_estimate.h) is lower. Behind rematerialize, which may make rows in all scans.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module gathers_in_trips(Module module, PassContext& context);
inline constexpr Pass kGathersInTrips{
    .name = "gathers_in_trips",
    .doc = "gather the rows of a stack in the trips of the scan that reads them first, where that takes less time",
    .run = gathers_in_trips,
    .needs_runnable = true,
    .takes = {.first = Stage::kLocal},
    .reads = option("hardware") | option("donated") | option("memory_limit")};

}  // namespace shardwise
