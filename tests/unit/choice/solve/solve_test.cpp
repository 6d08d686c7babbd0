// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/solve.h"

#include <algorithm>
#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/choice/solve/core_problem.h"
#include "shardwise/choice/solve/dual_bound.h"
#include "shardwise/choice/solve/neighbourhood_search.h"
#include "shardwise/choice/solve/random_numbers.h"
#include "shardwise/choice/solve/reduced_graph.h"

namespace shardwise {
namespace {

using Picks = std::vector<uint32_t>;

void visit_all(const CostGraph& graph, const std::function<void(const Picks&)>& visit) {
  Picks picks(graph.size(), 0);
  for (;;) {
    visit(picks);
    size_t i = 0;
    while (i < graph.size() && ++picks[i] == graph.options(i)) picks[i++] = 0;
    if (i == graph.size()) return;
  }
}

GraphCost least_cost(const CostGraph& graph) {
  GraphCost least = kForbidden;
  visit_all(graph, [&](const Picks& picks) {
    if (graph.peak_of(picks) <= graph.limit()) least = std::min(least, graph.cost_of(picks));
  });
  return least;
}

struct Shape {
  size_t nodes = 8, options = 4;
  double edges = 0.35, forbidden = 0.15;
  bool has_memory = false;
};

// With followers, pairs that cannot be, edges that are sums, and equal costs.
CostGraph random_graph(const Shape& shape, RandomNumbers& random) {
  CostGraph graph;
  for (size_t i = 0; i < shape.nodes; ++i) {
    std::vector<GraphCost> costs(1 + random.below(shape.options));
    for (GraphCost& cost : costs) cost = static_cast<GraphCost>(random.below(20));
    graph.add_node(std::move(costs));
  }
  for (size_t i = 0; i < shape.nodes; ++i) {
    for (size_t j = 0; j < shape.nodes; ++j) {
      if (random.uniform() >= shape.edges / (i == j ? 4 : 1)) continue;
      const bool follows = random.uniform() < 0.2;
      std::vector<GraphCost> costs;
      for (size_t k = 0; k < graph.options(i); ++k) {
        for (size_t l = 0; l < graph.options(j); ++l) {
          const bool is_forbidden = follows ? l != k % graph.options(j) : random.uniform() < shape.forbidden;
          costs.push_back(is_forbidden ? kForbidden : static_cast<GraphCost>(random.below(12)));
        }
      }
      graph.add_edge(i, j, std::move(costs));
    }
  }
  if (!shape.has_memory) return graph;
  std::vector<int64_t> least(12, 0), most(12, 0);
  for (size_t i = 0; i < shape.nodes; ++i) {
    const auto begin = static_cast<int64_t>(random.below(10)), end = begin + 1 + static_cast<int64_t>(random.below(3));
    std::vector<int64_t> bytes(graph.options(i));
    for (int64_t& each : bytes) each = static_cast<int64_t>(random.below(100));
    for (int64_t t = begin; t < std::min<int64_t>(end, 12); ++t) {
      least[static_cast<size_t>(t)] += std::ranges::min(bytes);
      most[static_cast<size_t>(t)] += std::ranges::max(bytes);
    }
    graph.add_use(i, begin, end, std::move(bytes));
  }
  const int64_t low = std::ranges::max(least), high = std::ranges::max(most);
  graph.set_limit(low - 5 + static_cast<int64_t>(random.uniform() * static_cast<double>(high - low + 5)));
  return graph;
}

// A chain of rows of a grid: too wide for the exact steps, and more picks than an enumeration tries.
CostGraph grid(size_t rows, size_t columns, bool has_memory) {
  RandomNumbers random(rows * 100 + columns);
  CostGraph graph;
  const auto table = [&] {
    std::vector<GraphCost> costs(9);
    for (GraphCost& cost : costs) cost = static_cast<GraphCost>(random.below(100));
    return costs;
  };
  for (size_t i = 0; i < rows * columns; ++i) {
    graph.add_node({static_cast<GraphCost>(random.below(100)), static_cast<GraphCost>(random.below(100)), 50});
    if (has_memory) graph.add_use(i, static_cast<int64_t>(i), static_cast<int64_t>(i + 5), {10, 20, 30});
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      if (j + 1 < columns) graph.add_edge(i * columns + j, i * columns + j + 1, table());
      if (i + 1 < rows) graph.add_edge((i + 1) * columns + j, i * columns + j, table());
    }
  }
  if (has_memory) graph.set_limit(85);
  return graph;
}

TEST(Solve, FindsTheOptimumOfRandomGraphs) {
  RandomNumbers random(2024);
  int impossible = 0;
  for (int i = 0; i < 2000; ++i) {
    const CostGraph graph = random_graph({.has_memory = i % 2 == 1}, random);
    const Solution solution = solve(graph, {});
    const GraphCost least = least_cost(graph);
    ASSERT_EQ(solution.cost, least) << i;
    ASSERT_EQ(solution.bound, least) << i;
    impossible += least == kForbidden ? 1 : 0;
    if (least == kForbidden) continue;
    ASSERT_EQ(graph.cost_of(solution.picks), least);
    ASSERT_LE(graph.peak_of(solution.picks), graph.limit());
  }
  EXPECT_GT(impossible, 20);
  EXPECT_LT(impossible, 1500);
}

// The parts that only large graphs reach, on small ones: a bound is one, and the search ends at the optimum.
TEST(Solve, BoundsAndSearchesHoldOnTheirOwn) {
  RandomNumbers random(7);
  int tight = 0, found = 0, compared = 0;
  for (int i = 0; i < 300; ++i) {
    const CostGraph graph = random_graph({.forbidden = 0.02, .has_memory = i % 2 == 1}, random);
    const GraphCost least = least_cost(graph);
    const ReducedGraph reduced(graph);
    if (least == kForbidden || !reduced.is_possible()) continue;
    const CoreProblem core(graph, reduced);
    if (core.size() == 0) continue;
    DualBound dual(core);
    for (int step = 0; step < 200; ++step) dual.step(static_cast<double>(least - reduced.constant()));
    ASSERT_LE(dual.bound() + static_cast<double>(reduced.constant()), static_cast<double>(least) + 1e-6) << i;
    tight += dual.bound() + static_cast<double>(reduced.constant()) > 0.95 * static_cast<double>(least) ? 1 : 0;
    SearchState state(core, dual.picks());
    NeighbourhoodSearch search(core, dual.prices_before(), state);
    for (int round = 0; round < 100; ++round) search.round();
    ASSERT_NEAR(state.cost(), core.cost_of(state.picks()), 1e-6);
    ++compared;
    const bool fits = state.is_possible() && state.is_within_limit();
    found += fits && state.cost() + static_cast<double>(reduced.constant()) < static_cast<double>(least) + 0.5 ? 1 : 0;
  }
  EXPECT_GT(compared, 100);
  EXPECT_GT(found, compared * 4 / 5);
  EXPECT_GT(tight, compared * 3 / 4);
}

TEST(Solve, ANarrowGraphWithoutALimitIsSolvedExactly) {
  const CostGraph graph = grid(5, 40, false);
  const Solution solution = solve(graph, {});
  EXPECT_EQ(solution.cost, solution.bound);
  EXPECT_EQ(solution.cost, graph.cost_of(solution.picks));
}

constexpr SolveEffort kLittle{.bound_cells = 50'000'000, .search_cells = 10'000'000, .rounds_without_gain = 40};

TEST(Solve, AWideGraphUnderALimitHasABoundNearItsCost) {
  const CostGraph graph = grid(12, 12, true);
  const Solution solution = solve(graph, kLittle);
  ASSERT_TRUE(solution.is_feasible());
  EXPECT_LE(graph.peak_of(solution.picks), graph.limit());
  EXPECT_LE(solution.bound, solution.cost);
  EXPECT_GT(static_cast<double>(solution.bound), 0.9 * static_cast<double>(solution.cost));
}

TEST(Solve, IsTheSameTwiceAndNeverWorseThanItsStart) {
  const CostGraph graph = grid(12, 12, true);
  const Solution first = solve(graph, kLittle);
  EXPECT_EQ(solve(graph, kLittle).picks, first.picks);
  const SolveEffort least{.bound_cells = 1, .search_cells = 1, .rounds_without_gain = 1};
  EXPECT_EQ(solve(graph, least, first.picks).cost, first.cost);
  EXPECT_LE(solve(graph, kLittle, Picks(graph.size(), 0)).cost, graph.cost_of(Picks(graph.size(), 0)));
}

TEST(Solve, PollsAndStopsWhereThatThrows) {
  struct Stop {};
  int polls = 0;
  const auto poll = [&] {
    if (++polls == 5) throw Stop();
  };
  EXPECT_THROW(solve(grid(12, 12, true), {}, {}, poll), Stop);
}

TEST(Solve, SaysWhatIsWrongWithAGraph) {
  CostGraph graph;
  graph.add_node({1, 2});
  EXPECT_THROW(graph.add_node({}), ShapeError);
  EXPECT_THROW(graph.add_node({-1}), ShapeError);
  EXPECT_THROW(graph.add_edge(0, 1, {1, 2}), ShapeError);
  EXPECT_THROW(graph.add_edge(0, 0, {1, 2}), ShapeError);
  EXPECT_THROW(graph.add_use(0, 0, 1, {1}), ShapeError);
  EXPECT_THROW(graph.check(Picks{2}), ShapeError);
  EXPECT_THROW(solve(graph, {}, {0, 0}), ShapeError);
}

TEST(Solve, AGraphWithoutNodesCostsNothing) {
  const Solution solution = solve(CostGraph(), {});
  EXPECT_EQ(solution.cost, 0);
  EXPECT_EQ(solution.bound, 0);
  EXPECT_TRUE(solution.picks.empty());
}

TEST(Solve, SumsDoNotOverflow) {
  CostGraph graph;
  for (int i = 0; i < 40; ++i) graph.add_node({kForbidden - 1});
  EXPECT_FALSE(solve(graph, {}).is_feasible());
}

}  // namespace
}  // namespace shardwise
