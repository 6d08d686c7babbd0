// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_cache.h"

#include <algorithm>
#include <functional>

#include "shardwise/reshard/plan.h"

namespace shardwise {
namespace {

size_t hash_of(const ReshardProblem& problem) {
  size_t hash = hash_combine(hash_value(problem.from), hash_value(problem.to));
  for (const int64_t size : problem.shape) hash = hash_combine(hash, std::hash<int64_t>{}(size));
  return hash_combine(hash, std::hash<int64_t>{}(problem.item_size));
}

// Equal meshes of two programs are two objects, and a program keeps only its own alive.
ReshardPlan with_meshes_of(const ReshardProblem& problem, const ReshardProblem& known, ReshardPlan plan) {
  for (ReshardStep& step : plan.steps) {
    step.after.mesh = step.after.mesh == known.to.mesh ? problem.to.mesh : problem.from.mesh;
  }
  return plan;
}

}  // namespace

std::list<PlanCache::Entry>::iterator PlanCache::find(const ReshardProblem& problem, size_t hash) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& entry) { return entry.second->problem == problem; });
  return found == end ? entries_.end() : found->second;
}

PlanCache::Found PlanCache::plan(const ReshardProblem& problem) {
  const size_t hash = hash_of(problem);
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = find(problem, hash); known != entries_.end()) {
      // Moves the entry to the front without a copy, so that iterators in by_hash_ stay valid.
      entries_.splice(entries_.begin(), entries_, known);
      return {with_meshes_of(problem, known->problem, known->plan), false};
    }
  }
  // Two threads may make the same plan, rather than wait for each other.
  ReshardPlan plan = plan_reshard(problem);
  keep(problem, hash, plan);
  return {std::move(plan), true};
}

void PlanCache::keep(const ReshardProblem& problem, size_t hash, const ReshardPlan& plan) {
  const std::scoped_lock lock(mutex_);
  // Another thread has made it meanwhile.
  if (find(problem, hash) != entries_.end()) return;
  entries_.push_front({problem, plan});
  by_hash_.emplace(hash, entries_.begin());
  if (entries_.size() <= most_) return;
  const auto oldest = std::prev(entries_.end());
  const auto [begin, end] = by_hash_.equal_range(hash_of(oldest->problem));
  // Several entries may have the same hash, so the one to erase is found by its place in the list.
  by_hash_.erase(std::find_if(begin, end, [&](const auto& entry) { return entry.second == oldest; }));
  entries_.erase(oldest);
}

size_t PlanCache::size() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

PlanCache& plans_of_process() {
  static PlanCache cache(4096);
  return cache;
}

}  // namespace shardwise
