// SPDX-License-Identifier: Apache-2.0
//
// The cheapest set of nodes that every path from a source to a sink passes.
//
//   MinimumCut cut(3);                     sources {0}, sinks {2}, edges 0 -> 1 -> 2
//   cut.set_cost(0, 8) …                   costs 8, 1, 4:  {1}
//
// Source: Ford and Fulkerson (1956), with the shortest augmenting paths of Edmonds and Karp (1972).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwise {

class MinimumCut {
 public:
  explicit MinimumCut(size_t nodes);
  void set_cost(size_t node, int64_t cost);
  void add_source(size_t node) { add_edge(kSource, entry(node), kUnlimited); }
  void add_sink(size_t node) { add_edge(exit(node), kSink, kUnlimited); }
  void add_edge_between(size_t from, size_t to) { add_edge(exit(from), entry(to), kUnlimited); }

  std::vector<bool> run();  // by node; of several cheapest sets, the one nearest to the sinks

 private:
  static constexpr int64_t kUnlimited = INT64_MAX / 4;
  static constexpr size_t kSource = 0, kSink = 1;
  static size_t entry(size_t node) { return 2 + 2 * node; }
  static size_t exit(size_t node) { return 3 + 2 * node; }

  struct Edge {
    size_t to;
    int64_t capacity;  // that is left; edge i ^ 1 runs back
  };
  void add_edge(size_t from, size_t to, int64_t capacity);
  bool augment();  // along a shortest path

  size_t nodes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<size_t> edge_of_cost_;  // by node
};

}  // namespace shardwise
