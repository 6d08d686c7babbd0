// SPDX-License-Identifier: Apache-2.0
//
// Plans of reshards, kept across compilations: a training step is compiled again for each batch shape, and equal layers
// reshard equal values.
//
//   PlanCache cache(1024);
//   cache.plan(problem).is_new      // true: it was made
//   cache.plan(problem).is_new      // false
#pragma once

#include "shardwise/base/recently_used.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

// Any number of threads may use it. It forgets the plan that was not asked for the longest.
class PlanCache {
 public:
  struct Found {
    std::shared_ptr<const ReshardPlan> plan;
    bool is_new = false;
  };

  explicit PlanCache(size_t most) : plans_(most) {}
  // The plan names the meshes of `problem`.
  Found plan(const ReshardProblem& problem);
  size_t size() const { return plans_.size(); }

 private:
  struct Made {
    MeshPtr from_mesh, to_mesh;  // of its problem
    std::shared_ptr<const ReshardPlan> plan;
  };
  RecentlyUsed<ReshardProblem, Made> plans_;
};

PlanCache& plans_of_process();

}  // namespace shardwise
