// SPDX-License-Identifier: Apache-2.0
//
// Start, end and limits of a reshard, and the plan that answers it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/cost/collective_cost.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

enum class ReshardMove : uint8_t { kSlice, kAllGather, kAllToAll, kPermute, kReduceScatter, kAllReduce, kExchange };

constexpr std::string_view move_name(ReshardMove move) {
  constexpr std::string_view kNames[] = {"all_slice",      "all_gather", "all_to_all", "collective_permute",
                                         "reduce_scatter", "all_reduce", "exchange"};
  return kNames[static_cast<size_t>(move)];
}

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

  int64_t collective_count() const {  // a slice sends nothing
    return std::ranges::count_if(steps, [](const ReshardStep& step) { return step.move != ReshardMove::kSlice; });
  }
};

struct ReshardProblem {
  Dims shape;
  int64_t item_size = 4;
  Placement from, to;  // of meshes with the same devices; `to.unreduced` is part of `from.unreduced`
  Link link = kFewestBytes;
  int64_t memory_limit = 0;  // bytes of the largest tile on the way; 0: the larger of source and target

  double tile_bytes(const Placement& placement) const {
    return static_cast<double>(item_size) * static_cast<double>(element_count(placement.local_shape()));
  }
  friend bool operator==(const ReshardProblem&, const ReshardProblem&) = default;
};

inline double seconds_of(const ReshardProblem& problem, ReshardMove move, double bytes) {
  constexpr double kSliceShareOfLatency = 1e-3;  // slices send nothing, but fewer are better
  return move == ReshardMove::kSlice ? problem.link.latency * kSliceShareOfLatency : seconds(problem.link, bytes);
}

// Adds a step that has its bytes, and counts them.
inline void add_step(const ReshardProblem& problem, ReshardPlan& plan, ReshardStep step) {
  plan.bytes += step.bytes;
  plan.seconds += seconds_of(problem, step.move, step.bytes);
  plan.steps.push_back(std::move(step));
}

}  // namespace shardwise
