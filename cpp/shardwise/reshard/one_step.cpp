// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/one_step.h"

#include "shardwise/base/error.h"
#include "shardwise/cost/exchange_cost.h"

namespace shardwise {
namespace {

// Counting takes less than a millisecond.
constexpr int64_t kMostPositions = 4'096;

// Blocks of `from` to blocks of `to`, in place.
ExchangeMap map_between(const Placement& from, const Placement& to, DimSpan shape) {
  ExchangeMap map{.to = {}, .from = {{}}};
  if (from.mesh != to.mesh && !from.mesh->same_devices(*to.mesh)) {
    map.from_mesh = from.mesh;
    map.to_mesh = to.mesh;
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    map.to.push_back({.axes = to.dims[d].axes, .rows = to.dims[d].block, .step = to.dims[d].block, .size = shape[d]});
    map.from[0].push_back({.axes = from.dims[d].axes, .block = from.dims[d].block, .size = shape[d]});
  }
  return map;
}

}  // namespace

ReshardPlan one_exchange(const ReshardProblem& problem) {
  check_internal(problem.from.unreduced == problem.to.unreduced, "an exchange reduces nothing");
  const ExchangeCost cost = exchange_cost(map_between(problem.from, problem.to, problem.shape), kMostPositions);
  ReshardStep step;
  step.move = ReshardMove::kExchange;
  step.after = problem.to;
  step.bytes = cost.elements * static_cast<double>(problem.item_size);
  ReshardPlan plan;
  add_step(plan, std::move(step));
  return plan;
}

}  // namespace shardwise
