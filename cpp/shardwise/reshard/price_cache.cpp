// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/price_cache.h"

#include <memory>
#include <utility>

#include "shardwise/reshard/across_meshes.h"
#include "shardwise/reshard/plan.h"

namespace shardwise {

namespace {

// The same movement without the dims that are whole before and after it. Other problems stay as they are.
ReshardProblem without_whole_dims(ReshardProblem problem) {
  // A reduction may scatter a dim that is whole before and after it.
  if (problem.from.unreduced != problem.to.unreduced || is_across_meshes(problem)) return problem;
  size_t kept = 0;
  for (size_t d = 0; d < problem.shape.size(); ++d) {
    DimPlacement &from = problem.from.dims[d], &to = problem.to.dims[d];
    if (from.axes.empty() && to.axes.empty()) {
      problem.item_size *= problem.shape[d];
      continue;
    }
    if (kept != d) {
      problem.shape[kept] = problem.shape[d];
      problem.from.dims[kept] = std::move(from);
      problem.to.dims[kept] = std::move(to);
    }
    ++kept;
  }
  problem.shape.resize(kept);
  problem.from.dims.resize(kept);
  problem.to.dims.resize(kept);
  return problem;
}

}  // namespace

PriceCache::Found PriceCache::price(ReshardProblem problem, HardwarePtr planned_on, HardwarePtr priced_on) {
  Key key{without_whole_dims(std::move(problem)), std::move(planned_on), std::move(priced_on)};
  if (const auto known = prices_.find(key)) return {*known, false};
  // Two threads may make the same plan, rather than wait for each other.
  const ReshardPlan plan = plan_reshard(key.problem, key.planned_on.get());
  const ReshardPrice price{price_of(plan, key.problem, *key.priced_on), plan.bytes, plan.mean_bytes};
  prices_.keep(std::move(key), std::make_shared<const ReshardPrice>(price));
  return {price, true};
}

PriceCache& prices_of_process() {
  // A step of GShard's 1T model on two axes asks for 19,000 prices of about half a KiB.
  static PriceCache cache(32'768);
  return cache;
}

}  // namespace shardwise
