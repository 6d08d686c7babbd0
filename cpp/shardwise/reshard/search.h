// SPDX-License-Identifier: Apache-2.0
//
// Finds the cheapest sequence of moves from one placement of a tensor to another.
//
//   f32[16,4] on x=4, y=2:  [{"x", "y"}, {}]  ->  [{"x"}, {"y"}]
//     all_to_all {"y"}: 0->1                    16 bytes received by each device
//
// Axes are cut only where a placement cuts them or where shards of the two placements end, so that the work does not
// depend on the number of devices. Moves:
//
//   slice           appends axes to dims; nothing is sent
//   all-gather      drops the last axes of dims
//   all-to-all      moves the last axes of one dim to the end of another
//   permute         replaces axes by others of the same total size, dim by dim
//   reduce-scatter  appends axes with a pending reduction to dims
//   all-reduce      completes a pending reduction
//
// Blocks: a dim of 17 rows in 4·2 shards has blocks of 3. Gathering the minor 2 gives blocks of 6, not ceil(17/4) = 5,
// and stays one collective. Splitting a dim that is already split needs a block that divides evenly.
//
// The search is Dijkstra's algorithm over placements by α-β cost. No tile on the way may be larger than the larger of
// source and target, unless there is no other way. The number of visited placements is bounded; beyond the bound, the
// plan that always works is used: gather what must move, then slice.
#pragma once

#include "shardwise/reshard/problem.h"

namespace shardwise {

ReshardPlan search_reshard(const ReshardProblem& problem);

// The plan without a search: gathers dims that must change, reduces, slices.
ReshardPlan gather_and_slice(const ReshardProblem& problem);

}  // namespace shardwise
