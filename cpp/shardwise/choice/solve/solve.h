// SPDX-License-Identifier: Apache-2.0
//
// The cheapest options of a cost graph (cost_graph.h), as far as a given effort finds them, and a bound:
//
//   const Solution solution = solve(graph, {});
//   solution.picks        an option per node
//   solution.cost         7
//   solution.bound        7: no other picks cost less;  below the cost: some may, by this much
//
// In turn: exact steps (reduced_graph.h), a dual bound (dual_bound.h), and a search (neighbourhood_search.h). Without a limit
// of memory, a graph that is narrow enough is solved exactly; with one, a small graph is. The same graph gives the same
// solution: the effort is counted, not timed.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shardwise/choice/solve/cost_graph.h"

namespace shardwise {

struct SolveEffort {
  uint64_t bound_cells = 2'000'000'000;   // costs of options and pairs that the dual bound looks at
  uint64_t bound_patience = 300'000'000;  // so many of them without a gain end it
  uint64_t search_cells = 2'000'000'000;  // and the search
  uint32_t rounds_without_gain = 400;     // after so many rounds in a row the search ends
  double tolerance = 0;                   // a solution is good enough this near to the bound, relative to its cost
};

struct Solution {
  std::vector<uint32_t> picks;  // none if none was found
  GraphCost cost = kForbidden;
  GraphCost bound = 0;
  bool is_feasible() const { return cost < kForbidden; }
};

// `start` is none or picks within the limit: the solution is never worse. `poll` is called often, and may throw.
Solution solve(const CostGraph& graph, const SolveEffort& effort, std::vector<uint32_t> start = {},
               const std::function<void()>& poll = {});

}  // namespace shardwise
