// SPDX-License-Identifier: Apache-2.0
//
// How to get a tensor from one placement to another: the cheapest sequence of moves.
//
//   f32[16,4] on x=4, y=2:  [{"x", "y"}, {}]  ->  [{"x"}, {"y"}]
//     all_to_all {"y"}: 0->1                    16 bytes received by each device
//
// A placement says, per dim, which axes cut it (major to minor) and how long a block is; and over which axes a
// reduction is pending. Axes are cut where a placement cuts them or where shards of the two end, and no finer, so that
// the work does not depend on the number of devices. Moves:
//
//   slice           appends axes to dims; nothing is sent
//   all-gather      drops the last axes of dims
//   all-to-all      moves the last axes of one dim to the end of another
//   permute         replaces axes by others of the same total size, dim by dim
//   reduce-scatter  appends axes with a pending reduction to dims
//   all-reduce      completes a pending reduction
//
// Blocks: a dim of 17 rows in 4·2 shards has blocks of 3; gathering the minor 2 gives blocks of 6, not ceil(17/4) = 5,
// and stays one collective. Cutting a dim that is cut already needs a block that divides evenly.
//
// The search is Dijkstra's over placements by α-β cost, on two conditions: no tile on the way is larger than the larger
// of source and target unless nothing else leads there, and a bound on the number of placements looked at; behind the
// bound stands the plan that always works: gather what must go, then slice.
#pragma once

#include "shardwise/reshard/problem.h"

namespace shardwise {

// Blocks are ceil(size / shards) unless given.
Placement placement_of(const TensorSharding& sharding, DimSpan shape, const Dims* blocks = nullptr);

ReshardPlan search_reshard(const ReshardProblem& problem);

// The plan without a search: gather what is not where it must be, reduce, slice.
ReshardPlan gather_and_slice(const ReshardProblem& problem);

}  // namespace shardwise
