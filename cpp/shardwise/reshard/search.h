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

#include <cstdint>
#include <vector>

#include "shardwise/cost/collective_cost.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

enum class ReshardMove : uint8_t { kSlice, kAllGather, kAllToAll, kPermute, kReduceScatter, kAllReduce };

struct DimMove {
  AxisList axes;
  int64_t from_dim = 0;
  int64_t to_dim = 0;
};

struct ReshardStep {
  ReshardMove move = ReshardMove::kSlice;
  std::vector<AxisList> dim_axes;  // slice, all-gather, reduce-scatter: the axes that each dim gets or loses
  AxisList reduced;                // all-reduce
  std::vector<DimMove> dim_moves;  // all-to-all: ascending source dims, all dims different
  Placement after;
  double bytes = 0;  // received by one device
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  double bytes = 0;    // received by one device
  double seconds = 0;  // by the link of the problem
  int64_t states = 0;  // placements that the search looked at
};

struct ReshardProblem {
  Dims shape;
  int64_t item_size = 4;
  Placement from, to;  // of meshes with the same devices; `to.unreduced` is part of `from.unreduced`
  Link link = kFewestBytes;
  int64_t memory_limit = 0;  // bytes of the largest tile on the way; 0: the larger of source and target
  bool align_axes = true;    // also cuts axes where shards of the two placements end
};

ReshardPlan search_reshard(const ReshardProblem& problem);

// The plan without a search: gathers dims that must change, reduces, slices.
ReshardPlan gather_and_slice(const ReshardProblem& problem);

}  // namespace shardwise
