// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/enumeration.h"

#include <algorithm>

#include "shardwise/choice/solve/range_maximum.h"

namespace shardwise {
namespace {

constexpr double kMostPicks = 1 << 21;

class Enumeration {
 public:
  explicit Enumeration(const CoreProblem& problem)
      : problem_(problem), used_(problem.base()), picks_(problem.size(), 0), least_behind_(problem.size() + 1, 0) {
    for (size_t i = problem.size(); i-- > 0;) {
      least_behind_[i] = least_behind_[i + 1] + std::ranges::min(problem.node(i).costs);
    }
    least_ = problem.forbidden();
  }

  std::vector<uint32_t> run() {
    try_all(0, 0);
    return best_;
  }

 private:
  void try_all(size_t node, double cost) {
    if (node == problem_.size()) {
      least_ = cost;
      best_ = picks_;
      return;
    }
    for (uint32_t k = 0; k < problem_.options(node); ++k) {
      double sum = cost + problem_.node(node).costs[k];
      for (const auto& [id, neighbour] : problem_.node(node).neighbours) {
        if (neighbour < node) sum += problem_.edges()[id].row(neighbour, picks_[neighbour])[k];
      }
      if (sum + least_behind_[node + 1] >= least_) continue;
      picks_[node] = k;
      use(node, k, 1);
      if (problem_.times() == 0 || used_.largest() <= problem_.limit()) try_all(node + 1, sum);
      use(node, k, -1);
    }
  }
  void use(size_t node, size_t option, double sign) {
    for (const CoreProblem::Use& use : problem_.node(node).uses) {
      used_.add(use.begin, use.end, sign * use.bytes[option]);
    }
  }

  const CoreProblem& problem_;
  RangeMaximum used_;
  std::vector<uint32_t> picks_, best_;
  std::vector<double> least_behind_;  // of all nodes from here on, without edges
  double least_ = 0;
};

}  // namespace

bool is_enumerable(const CoreProblem& problem) {
  double count = 1;
  for (size_t i = 0; i < problem.size() && count <= kMostPicks; ++i) count *= static_cast<double>(problem.options(i));
  return count <= kMostPicks;
}

std::vector<uint32_t> cheapest_by_enumeration(const CoreProblem& problem) { return Enumeration(problem).run(); }

}  // namespace shardwise
