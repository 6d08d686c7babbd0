// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/folded_graph.h"

#include <gtest/gtest.h>

#include "shardwise/choice/solve/random_numbers.h"
#include "shardwise/choice/solve/solve.h"

namespace shardwise {
namespace {

std::vector<GraphCost> random_costs(size_t count, RandomNumbers& random) {
  std::vector<GraphCost> costs(count);
  for (GraphCost& cost : costs) cost = static_cast<GraphCost>(random.below(50));
  return costs;
}

// Layers of a few nodes, each with edges inside and one to the next layer.
struct Layers {
  static constexpr size_t kNodes = 4, kOptions = 3;

  explicit Layers(uint64_t seed) {
    RandomNumbers random(seed);
    for (auto& costs : nodes) costs = random_costs(kOptions, random);
    for (auto& costs : edges) costs = random_costs(kOptions * kOptions, random);
  }
  CostGraph repeated(size_t count) const {
    CostGraph graph;
    for (size_t layer = 0; layer < count; ++layer) {
      for (const auto& costs : nodes) graph.add_node(costs);
      const size_t first = layer * kNodes;
      for (size_t i = 0; i + 1 < kNodes; ++i) graph.add_edge(first + i, first + i + 1, edges[i]);
      if (layer > 0) graph.add_edge(first - 1, first, edges[kNodes - 1]);
    }
    return graph;
  }

  std::vector<GraphCost> nodes[kNodes], edges[kNodes];
};

TEST(FoldedGraph, PicksCostTheSameAsInTheWholeGraph) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const CostGraph whole = Layers(seed).repeated(100);
    const FoldedGraph folded(whole, std::vector<uint32_t>(whole.size(), 0));
    ASSERT_TRUE(folded.is_repeated());
    RandomNumbers random(seed);
    std::vector<uint32_t> picks(folded.graph().size());
    for (uint32_t& pick : picks) pick = static_cast<uint32_t>(random.below(Layers::kOptions));
    EXPECT_EQ(whole.cost_of(folded.expanded(picks)), folded.graph().cost_of(picks));
  }
}

// The best picks of a long chain of layers repeat, but for its ends, or with a period of a few layers.
TEST(FoldedGraph, ItsSolutionIsNearThatOfTheWholeGraph) {
  double ratios = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const CostGraph whole = Layers(seed).repeated(100);
    const std::vector<uint32_t> known(whole.size(), 0);
    const FoldedGraph folded(whole, known);
    const Solution found = solve(folded.graph(), {}, folded.known()), best = solve(whole, {}, known);
    EXPECT_EQ(whole.cost_of(folded.expanded(found.picks)), found.cost);
    EXPECT_LE(found.cost, whole.cost_of(known));
    EXPECT_LE(best.cost, found.cost);
    ratios += static_cast<double>(found.cost) / static_cast<double>(best.cost) / 50;
  }
  EXPECT_LT(ratios, 1.05);
}

TEST(FoldedGraph, HasAsManyNodesForAThousandLayersAsForAHundred) {
  const auto folded = [](size_t layers) {
    const CostGraph whole = Layers(1).repeated(layers);
    return FoldedGraph(whole, std::vector<uint32_t>(whole.size(), 0)).graph().size();
  };
  EXPECT_EQ(folded(1000), folded(100));
}

TEST(FoldedGraph, NodesWithOtherCostsOtherEdgesOrOtherKnownPicksAreApart) {
  CostGraph graph;
  for (int i = 0; i < 3; ++i) graph.add_node({1, 2});
  graph.add_node({1, 3});
  const std::vector<uint32_t> known{0, 0, 1, 0};
  const auto apart = [&] {
    const std::vector<uint32_t> numbers = [&] {
      std::vector<uint32_t> picks(FoldedGraph(graph, known).graph().size());
      for (uint32_t i = 0; i < picks.size(); ++i) picks[i] = i;
      return FoldedGraph(graph, known).expanded(picks);
    }();
    return numbers;
  };
  EXPECT_EQ(apart(), (std::vector<uint32_t>{0, 0, 1, 2}));
  // The two ends of an edge are not alike, even if its costs are the same both ways.
  graph.add_edge(0, 1, {0, 4, 4, 0});
  EXPECT_EQ(apart(), (std::vector<uint32_t>{0, 1, 2, 3}));
}

TEST(FoldedGraph, WhatCannotBeStaysSo) {
  CostGraph graph;
  for (int i = 0; i < 8; ++i) graph.add_node({0, 1});
  graph.forbid(0, 1);
  const std::vector<uint32_t> known(8, 0);
  const FoldedGraph folded(graph, known);
  EXPECT_EQ(folded.expanded(folded.known()), known);
  const std::vector<uint32_t> ones(folded.graph().size(), 1);
  EXPECT_EQ(folded.graph().cost_of(ones), kForbidden);
}

}  // namespace
}  // namespace shardwise
