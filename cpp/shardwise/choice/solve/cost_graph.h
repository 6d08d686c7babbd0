// SPDX-License-Identifier: Apache-2.0
//
// A problem of the solver (solve.h): one option per node, so that the sum of costs is the least. It knows no programs.
//
//   CostGraph graph;
//   const auto x = graph.add_node({5, 0});
//   const auto y = graph.add_node({0, 3});
//   graph.add_edge(x, y, {0, kForbidden,       x=0: y=0 costs nothing, y=1 cannot be
//                         7, 0});              x=1: y=0 costs 7 more
//   graph.cost_of({1, 1})                      0 + 3 + 0 = 3
//
// Under a limit of memory, a node uses memory from one time to another, by option, and at no time the sum of uses may be
// above the limit:
//
//   graph.add_use(x, 0, 2, {8, 4});            8 or 4 bytes at the times 0 and 1
//   graph.set_limit(10);
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace shardwise {

using GraphCost = int64_t;
inline constexpr GraphCost kForbidden = 1'000'000'000'000'000'000;  // this or more is "cannot be"

// Never above kForbidden. Costs are not below zero.
constexpr GraphCost add_costs(GraphCost a, GraphCost b) {
  return a >= kForbidden || b >= kForbidden || a + b >= kForbidden ? kForbidden : a + b;
}

class CostGraph {
 public:
  struct Edge {
    size_t a = 0, b = 0;
    std::vector<GraphCost> costs;  // [option of a][option of b]
  };
  struct Use {
    size_t node = 0;
    int64_t begin = 0, end = 0;  // used at begin <= time < end
    std::vector<int64_t> bytes;  // by option of the node
  };
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  size_t add_node(std::vector<GraphCost> costs);  // by option; at least one
  // A node with itself: the diagonal. Edges between the same two nodes add up.
  void add_edge(size_t a, size_t b, std::vector<GraphCost> costs);
  void add_use(size_t node, int64_t begin, int64_t end, std::vector<int64_t> bytes);
  void forbid(size_t node, size_t option) { nodes_[node][option] = kForbidden; }
  void set_limit(int64_t bytes) { limit_ = bytes; }

  size_t size() const { return nodes_.size(); }
  size_t options(size_t node) const { return nodes_[node].size(); }
  std::span<const GraphCost> costs(size_t node) const { return nodes_[node]; }
  const std::vector<Edge>& edges() const { return edges_; }
  const std::vector<Use>& uses() const { return uses_; }
  int64_t limit() const { return limit_; }

  // Throws ShapeError unless there is an option per node.
  void check(std::span<const uint32_t> picks) const;
  GraphCost cost_of(std::span<const uint32_t> picks) const;  // kForbidden if one of them is
  int64_t peak_of(std::span<const uint32_t> picks) const;    // the most memory that is used at a time

 private:
  std::vector<std::vector<GraphCost>> nodes_;
  std::vector<Edge> edges_;
  std::vector<Use> uses_;
  int64_t limit_ = kNoLimit;
};

}  // namespace shardwise
