// SPDX-License-Identifier: Apache-2.0
//
// Reshards from one mesh to another over the same devices: pending reductions are completed on the first mesh, then one
// exchange moves to each device the elements of its new tile that it does not hold.
#pragma once

#include <functional>
#include <vector>

#include "shardwise/reshard/problem.h"

namespace shardwise {

// The same problem on one mesh if a side of it is replicated: a whole value is on every mesh.
ReshardProblem with_common_mesh(ReshardProblem problem);
bool is_across_meshes(const ReshardProblem& problem);
// At least one. Nothing is unreduced after them. `plan` plans what happens on one mesh.
std::vector<ReshardPlan> plans_across_meshes(const ReshardProblem& problem,
                                             const std::function<ReshardPlan(const ReshardProblem&)>& plan);

}  // namespace shardwise
