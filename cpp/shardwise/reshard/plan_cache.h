// SPDX-License-Identifier: Apache-2.0
//
// Plans of reshards, kept across compilations: a training step is compiled again for each batch shape, and equal layers
// reshard equal values.
//
//   PlanCache cache(1024);
//   cache.plan(problem).is_new      // true: it was made
//   cache.plan(problem).is_new      // false
#pragma once

#include <list>
#include <mutex>
#include <unordered_map>

#include "shardwise/reshard/problem.h"

namespace shardwise {

// Any number of threads may use it. It forgets the plan that was not asked for the longest.
class PlanCache {
 public:
  struct Found {
    ReshardPlan plan;
    bool is_new = false;
  };

  explicit PlanCache(size_t most) : most_(most) {}
  // The plan names the meshes of `problem`.
  Found plan(const ReshardProblem& problem);
  size_t size() const;

 private:
  struct Entry {
    ReshardProblem problem;
    ReshardPlan plan;
  };
  std::list<Entry>::iterator find(const ReshardProblem& problem, size_t hash);
  void keep(const ReshardProblem& problem, size_t hash, const ReshardPlan& plan);

  const size_t most_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_;  // used last first
  std::unordered_multimap<size_t, std::list<Entry>::iterator> by_hash_;
};

PlanCache& plans_of_process();

}  // namespace shardwise
