// SPDX-License-Identifier: Apache-2.0
//
// Start and end of a reshard, and the plan that answers it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/base/dims.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

enum class ReshardMove : uint8_t { kSlice, kAllGather, kAllToAll, kPermute, kReduceScatter, kAllReduce, kExchange };

constexpr std::string_view move_name(ReshardMove move) {
  constexpr std::string_view kNames[] = {"all_slice",      "all_gather", "all_to_all", "collective_permute",
                                         "reduce_scatter", "all_reduce", "exchange"};
  return kNames[static_cast<size_t>(move)];
}

struct ReshardStep {
  ReshardMove move = ReshardMove::kSlice;
  std::vector<AxisList> dim_axes;       // slice, all-gather, reduce-scatter: the axes that each dim gets or loses
  AxisList reduced;                     // all-reduce
  std::vector<AllToAllMove> dim_moves;  // all-to-all: ascending source dims, all dims different
  Placement after;
  double bytes = 0;  // received by the device that receives most
  double mean_bytes =
      0;  // of an all-reduce: by a device on average, which does not jump with the devices; else `bytes`
};

struct ReshardPlan {
  std::vector<ReshardStep> steps;
  double bytes = 0;  // of the steps
  double mean_bytes = 0;
  double cost = 0;  // compares plans: mean_bytes, one for each collective, a thousandth for each slice

  int64_t collective_count() const {  // a slice sends nothing
    return std::ranges::count_if(steps, [](const ReshardStep& step) { return step.move != ReshardMove::kSlice; });
  }
};

struct ReshardProblem {
  Dims shape;
  int64_t item_size = 4;
  Placement from, to;  // of meshes with the same devices; `to.unreduced` is part of `from.unreduced`

  double tile_bytes(const Placement& placement) const {
    int64_t elements = 1;
    for (const DimPlacement& dim : placement.dims) elements *= dim.block;
    return static_cast<double>(item_size) * static_cast<double>(elements);
  }
  friend bool operator==(const ReshardProblem&, const ReshardProblem&) = default;
};

inline size_t hash_value(const ReshardProblem& problem) {
  size_t hash = hash_combine(hash_value(problem.from), hash_value(problem.to));
  for (const int64_t size : problem.shape) hash = hash_combine(hash, std::hash<int64_t>{}(size));
  return hash_combine(hash, std::hash<int64_t>{}(problem.item_size));
}

// Adds a step that has its bytes, and counts them.
inline void add_step(ReshardPlan& plan, ReshardStep step) {
  constexpr double kSlice = 1e-3;  // slices send nothing, but fewer are better
  plan.bytes += step.bytes;
  plan.mean_bytes += step.mean_bytes;
  plan.cost += step.move == ReshardMove::kSlice ? kSlice : 1 + step.mean_bytes;
  plan.steps.push_back(std::move(step));
}

}  // namespace shardwise
