// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/one_step.h"

#include <algorithm>

#include "shardwise/cost/exchange_cost.h"

namespace shardwise {
namespace {

// Counting takes less than a millisecond.
constexpr int64_t kMostPositions = 4'096;

// Any plan receives at least the elements by which the largest tile grows.
double least_bytes(const ReshardProblem& problem) {
  double before = 1, after = 1;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    before *= static_cast<double>(std::min(problem.from.dims[d].block, problem.shape[d]));
    after *= static_cast<double>(std::min(problem.to.dims[d].block, problem.shape[d]));
  }
  return std::max(after - before, 0.0) * static_cast<double>(problem.item_size);
}

// Blocks of `from` to blocks of `to`, in place.
ExchangeMap map_between(const Placement& from, const Placement& to, DimSpan shape) {
  ExchangeMap map{.to = {}, .from = {{}}};
  for (size_t d = 0; d < shape.size(); ++d) {
    map.to.push_back({.axes = to.dims[d].axes, .rows = to.dims[d].block, .step = to.dims[d].block, .size = shape[d]});
    map.from[0].push_back({.axes = from.dims[d].axes, .block = from.dims[d].block, .size = shape[d]});
  }
  return map;
}

}  // namespace

std::optional<ReshardPlan> one_exchange(const ReshardProblem& problem, double bytes) {
  const bool reduces = problem.from.unreduced != problem.to.unreduced;
  if (reduces || bytes <= least_bytes(problem)) return std::nullopt;
  const ExchangeCost cost = exchange_cost(map_between(problem.from, problem.to, problem.shape), kMostPositions);
  const double exchanged = cost.elements * static_cast<double>(problem.item_size);
  if (!cost.exact || exchanged >= bytes) return std::nullopt;
  ReshardStep step;
  step.move = ReshardMove::kExchange;
  step.after = problem.to;
  step.bytes = exchanged;
  return ReshardPlan{.steps = {std::move(step)}, .bytes = exchanged, .seconds = seconds(problem.link, exchanged)};
}

}  // namespace shardwise
