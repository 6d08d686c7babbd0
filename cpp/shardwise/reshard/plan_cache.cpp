// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_cache.h"

#include "shardwise/reshard/plan.h"

namespace shardwise {

PlanCache::Found PlanCache::plan(const ReshardProblem& problem, HardwarePtr hardware) {
  Key key{problem, std::move(hardware)};
  if (const auto known = plans_.find(key)) {
    if (known->from_mesh == problem.from.mesh && known->to_mesh == problem.to.mesh) return {known->plan, false};
    auto plan = std::make_shared<ReshardPlan>(*known->plan);
    // Equal meshes of two programs are two objects, and a program keeps only its own alive.
    for (ReshardStep& step : plan->steps) {
      step.after.mesh = step.after.mesh == known->to_mesh ? problem.to.mesh : problem.from.mesh;
    }
    return {std::move(plan), false};
  }
  // Two threads may make the same plan, rather than wait for each other.
  auto plan = std::make_shared<const ReshardPlan>(plan_reshard(problem, key.hardware.get()));
  plans_.keep(std::move(key), std::make_shared<const Made>(Made{problem.from.mesh, problem.to.mesh, plan}));
  return {std::move(plan), true};
}

PlanCache& plans_of_process() {
  static PlanCache cache(4096);
  return cache;
}

}  // namespace shardwise
