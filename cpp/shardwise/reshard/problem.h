// SPDX-License-Identifier: Apache-2.0
//
// Start, end and limits of a reshard, and the plan that answers it (search.h describes the moves).
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/cost/collective_cost.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

enum class ReshardMove : uint8_t { kSlice, kAllGather, kAllToAll, kPermute, kReduceScatter, kAllReduce, kExchange };

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

}  // namespace shardwise
