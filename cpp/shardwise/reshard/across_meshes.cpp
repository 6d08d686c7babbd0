// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/across_meshes.h"

#include "shardwise/base/error.h"
#include "shardwise/reshard/movement.h"

namespace shardwise {

ReshardProblem with_common_mesh(ReshardProblem problem) {
  if (!is_across_meshes(problem)) return problem;
  // Every device holds all of the value, whatever the mesh calls the device, so the side keeps its meaning on the other
  // mesh.
  if (problem.from.is_fully_replicated()) {
    problem.from.mesh = problem.to.mesh;
  } else if (problem.to.is_fully_replicated()) {
    problem.to.mesh = problem.from.mesh;
  }
  return problem;
}

bool is_across_meshes(const ReshardProblem& problem) {
  return problem.from.mesh != problem.to.mesh && !problem.from.mesh->same_devices(*problem.to.mesh);
}

std::vector<ReshardPlan> plans_across_meshes(const ReshardProblem& problem,
                                             const std::function<ReshardPlan(const ReshardProblem&)>& plan) {
  // The groups of a pending reduction are along axes of the old mesh, which the new one may not have.
  check_internal(problem.to.unreduced.empty(), "a value is reduced before it changes its mesh");
  if (problem.from.unreduced.empty()) return {one_exchange(problem)};
  Placement whole = problem.from;
  whole.unreduced.clear();
  whole.reducer = Reducer::kNone;
  std::vector<Placement> reduced{whole};
  for (size_t d = 0; d < whole.dims.size(); ++d) {  // a reduce-scatter to dim d
    Placement scattered = whole;
    AxisList& axes = scattered.dims[d].axes;
    append_merged(axes, problem.from.unreduced);
    // Some device would get only padding.
    if (product(axes) > problem.shape[d]) continue;
    scattered.dims[d].block = ceil_div(problem.shape[d], product(axes));
    reduced.push_back(std::move(scattered));
  }
  std::vector<ReshardPlan> plans;
  for (const Placement& placement : reduced) {
    ReshardProblem first = problem, then = problem;
    first.to = then.from = placement;
    ReshardPlan steps = plan(first);
    // The exchange may move smaller tiles after a reduce-scatter than after an all-reduce, so both are priced.
    for (ReshardStep& step : one_exchange(then).steps) add_step(steps, std::move(step));
    plans.push_back(std::move(steps));
  }
  return plans;
}

}  // namespace shardwise
