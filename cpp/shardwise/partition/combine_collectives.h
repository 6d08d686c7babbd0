// SPDX-License-Identifier: Apache-2.0
//
// Makes one collective of several that differ in their operands only, where they can travel together without making anything
// wait:
//
//   %2 = dot_general %x, %dy
//   %3 = "shardwise.all_reduce"(%2) <{axes = …{"x"}, reducer = "sum", cause = "reduction in dot_general"}>
//   %4 = dot_general %w, %dy
//   %5 = "shardwise.all_reduce"(%4) <{axes = …{"x"}, reducer = "sum", cause = "reduction in dot_general"}>
//   ->
//   %2 = dot_general %x, %dy
//   %4 = dot_general %w, %dy
//   %3:2 = "shardwise.all_reduce"(%2, %4) <{…, cause = ["reduction in dot_general", "reduction in dot_general"]}>
//
// Elements are reduced in the order that they had, so that results are equal bit by bit, and as many bytes travel. The estimate of
// a region (analysis/step_estimate.h) and the peak of the memory (analysis/live_bytes.h) do not rise: where they would, smaller
// groups are tried, and then none. combine/combined_groups.h says which collectives are chosen.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module combine_collectives(Module module, PassContext& context);
inline constexpr Pass kCombineCollectives{.name = "combine_collectives",
                                          .doc = "make one collective of several that are ready together",
                                          .run = combine_collectives,
                                          .needs_runnable = true,
                                          .takes = {.first = Stage::kLocal},
                                          .reads = option("hardware") | option("donated") | option("combine_bytes")};

}  // namespace shardwise
