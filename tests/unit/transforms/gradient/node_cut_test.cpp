// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/node_cut.h"

#include <random>

#include <gtest/gtest.h>

namespace shardwise {
namespace {

struct Graph {
  std::vector<int64_t> costs;
  std::vector<std::pair<size_t, size_t>> edges;
  std::vector<size_t> sources, sinks;
};

std::vector<size_t> cut(const Graph& graph) {
  NodeCut cut(graph.costs.size());
  for (size_t i = 0; i < graph.costs.size(); ++i) cut.set_cost(i, graph.costs[i]);
  for (const auto& [from, to] : graph.edges) cut.add_edge_between(from, to);
  for (const size_t node : graph.sources) cut.add_source(node);
  for (const size_t node : graph.sinks) cut.add_sink(node);
  std::vector<size_t> nodes;
  const std::vector<bool> is_cut = cut.run();
  for (size_t i = 0; i < is_cut.size(); ++i) {
    if (is_cut[i]) nodes.push_back(i);
  }
  return nodes;
}

using Nodes = std::vector<size_t>;

TEST(NodeCut, TakesTheCheapestNodeOfAChain) {
  EXPECT_EQ(cut({.costs = {8, 1, 4}, .edges = {{0, 1}, {1, 2}}, .sources = {0}, .sinks = {2}}), Nodes{1});
}

TEST(NodeCut, OfEqualNodesTakesTheOneNearestToTheSink) {
  EXPECT_EQ(cut({.costs = {4, 4, 4}, .edges = {{0, 1}, {1, 2}}, .sources = {0}, .sinks = {2}}), Nodes{2});
}

TEST(NodeCut, OneNodeBeforeAForkIsCheaperThanTwoBehindIt) {
  const std::vector<std::pair<size_t, size_t>> fork{{0, 1}, {0, 2}};
  EXPECT_EQ(cut({.costs = {5, 4, 4}, .edges = fork, .sources = {0}, .sinks = {1, 2}}), Nodes{0});
  EXPECT_EQ(cut({.costs = {9, 4, 4}, .edges = fork, .sources = {0}, .sinks = {1, 2}}), (Nodes{1, 2}));
}

TEST(NodeCut, NothingWithoutAPath) {
  EXPECT_EQ(cut({.costs = {1, 1}, .edges = {}, .sources = {0}, .sinks = {1}}), Nodes{});
  EXPECT_EQ(cut({.costs = {1, 1}, .edges = {{1, 0}}, .sources = {0}, .sinks = {1}}), Nodes{});
}

// Whether every path from a source to a sink passes one of the nodes.
bool separates(const Graph& graph, const std::vector<bool>& nodes) {
  std::vector<bool> reached(graph.costs.size());
  for (const size_t source : graph.sources) reached[source] = !nodes[source];
  for (size_t round = 0; round < graph.costs.size(); ++round) {
    for (const auto& [from, to] : graph.edges) {
      if (reached[from] && !nodes[to]) reached[to] = true;
    }
  }
  return std::none_of(graph.sinks.begin(), graph.sinks.end(), [&](size_t sink) { return reached[sink]; });
}

TEST(NodeCut, IsTheCheapestOfAllSetsInRandomGraphs) {
  std::mt19937 random(7);
  for (int example = 0; example < 200; ++example) {
    const size_t count = 2 + random() % 7;
    Graph graph;
    for (size_t i = 0; i < count; ++i) graph.costs.push_back(1 + random() % 9);
    for (size_t from = 0; from < count; ++from) {
      for (size_t to = from + 1; to < count; ++to) {
        if (random() % 3 == 0) graph.edges.emplace_back(from, to);
      }
    }
    graph.sources = {0, random() % count};
    graph.sinks = {count - 1, random() % count};

    int64_t cheapest = INT64_MAX;
    for (size_t set = 0; set < (size_t{1} << count); ++set) {
      std::vector<bool> nodes(count);
      int64_t cost = 0;
      for (size_t i = 0; i < count; ++i) {
        nodes[i] = (set >> i & 1) != 0;
        cost += nodes[i] ? graph.costs[i] : 0;
      }
      if (cost < cheapest && separates(graph, nodes)) cheapest = cost;
    }
    int64_t found = 0;
    std::vector<bool> nodes(count);
    for (const size_t node : cut(graph)) {
      found += graph.costs[node];
      nodes[node] = true;
    }
    EXPECT_EQ(found, cheapest) << "example " << example;
    EXPECT_TRUE(separates(graph, nodes)) << "example " << example;
  }
}

}  // namespace
}  // namespace shardwise
