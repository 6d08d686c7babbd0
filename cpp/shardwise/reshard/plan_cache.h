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
#include "shardwise/cost/hardware.h"
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
  // The plan names the meshes of `problem`. No hardware: that which sends least.
  Found plan(const ReshardProblem& problem, HardwarePtr hardware = nullptr);
  size_t size() const { return plans_.size(); }

 private:
  struct Key {
    ReshardProblem problem;
    HardwarePtr hardware;
    friend bool operator==(const Key& a, const Key& b) {
      const bool is_same = a.hardware == b.hardware || (a.hardware && b.hardware && *a.hardware == *b.hardware);
      return is_same && a.problem == b.problem;
    }
    friend size_t hash_value(const Key& key) {
      return hash_combine(hash_value(key.problem), key.hardware ? key.hardware->hash : 0);
    }
  };
  struct Made {
    MeshPtr from_mesh, to_mesh;  // of its problem
    std::shared_ptr<const ReshardPlan> plan;
  };
  RecentlyUsed<Key, Made> plans_;
};

PlanCache& plans_of_process();

}  // namespace shardwise
