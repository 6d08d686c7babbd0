// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/minimum_cut.h"

#include <algorithm>

namespace shardwise {

MinimumCut::MinimumCut(size_t nodes) : nodes_(nodes), edges_of_(2 + 2 * nodes) {
  for (size_t node = 0; node < nodes; ++node) {
    edge_of_cost_.push_back(edges_.size());
    // A node with a cost is an edge with a capacity between two nodes: a cut of edges is then a set of nodes.
    add_edge(entry(node), exit(node), 0);
  }
}

void MinimumCut::set_cost(size_t node, int64_t cost) { edges_[edge_of_cost_[node]].capacity = cost; }

void MinimumCut::add_edge(size_t from, size_t to, int64_t capacity) {
  // Edge 2 k and its reverse 2 k + 1 are neighbors, so that `^ 1` changes one into the other.
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool MinimumCut::augment() {
  constexpr size_t kNone = SIZE_MAX;
  std::vector<size_t> reached_by(edges_of_.size(), kNone);
  std::vector<size_t> queue{kSource};
  // Breadth first finds a shortest path, so that there are at most nodes * edges augmentations, whatever the costs.
  for (size_t next = 0; next < queue.size() && reached_by[kSink] == kNone; ++next) {
    for (const size_t edge : edges_of_[queue[next]]) {
      const size_t to = edges_[edge].to;
      if (edges_[edge].capacity == 0 || to == kSource || reached_by[to] != kNone) continue;
      reached_by[to] = edge;
      queue.push_back(to);
    }
  }
  if (reached_by[kSink] == kNone) return false;
  const auto along_path = [&](auto&& visit) {
    for (size_t at = kSink; at != kSource; at = edges_[reached_by[at] ^ 1].to) visit(reached_by[at]);
  };
  int64_t flow = kUnlimited;
  along_path([&](size_t edge) { flow = std::min(flow, edges_[edge].capacity); });
  along_path([&](size_t edge) {
    edges_[edge].capacity -= flow;
    edges_[edge ^ 1].capacity += flow;
  });
  return true;
}

std::vector<bool> MinimumCut::run() {
  while (augment()) continue;
  // Nodes that can still reach the sinks are on the sink side of the cut.
  std::vector<bool> reaches_sink(edges_of_.size());
  std::vector<size_t> queue{kSink};
  reaches_sink[kSink] = true;
  for (size_t next = 0; next < queue.size(); ++next) {
    for (const size_t edge : edges_of_[queue[next]]) {
      const size_t from = edges_[edge].to;
      if (edges_[edge ^ 1].capacity == 0 || reaches_sink[from]) continue;
      reaches_sink[from] = true;
      queue.push_back(from);
    }
  }
  // Nodes whose own edge is full and leads into that side. Starting from the sinks makes it the cut nearest to them, so
  // that fewer ops are computed again.
  std::vector<bool> is_cut(nodes_);
  for (size_t node = 0; node < nodes_; ++node) is_cut[node] = reaches_sink[exit(node)] && !reaches_sink[entry(node)];
  return is_cut;
}

}  // namespace shardwise
