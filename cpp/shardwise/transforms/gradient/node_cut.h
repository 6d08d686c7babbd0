// SPDX-License-Identifier: Apache-2.0
//
// The cheapest set of nodes that every path from a source to a sink passes:
//
//   NodeCut cut(3);                        sources {0}, sinks {2}, edges 0 -> 1 -> 2
//   cut.set_cost(0, 8) …                   costs 8, 1, 4:  {1}
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/base/minimum_cut.h"

namespace shardwise {

class NodeCut {
 public:
  explicit NodeCut(size_t nodes) : nodes_(nodes), cut_(entry(nodes)) {}
  // Once for each node: it is an edge with a capacity between two nodes, so that a cut of edges is a set of nodes.
  void set_cost(size_t node, int64_t cost) { cut_.add_edge(entry(node), exit(node), cost); }
  void add_source(size_t node) { cut_.add_edge(cut_.source(), entry(node), kUncuttable); }
  void add_sink(size_t node) { cut_.add_edge(exit(node), cut_.sink(), kUncuttable); }
  void add_edge_between(size_t from, size_t to) { cut_.add_edge(exit(from), entry(to), kUncuttable); }

  std::vector<bool> run();  // by node; of several cheapest sets, the one nearest to the sinks

 private:
  static uint32_t entry(size_t node) { return static_cast<uint32_t>(2 * node); }
  static uint32_t exit(size_t node) { return static_cast<uint32_t>(2 * node + 1); }

  size_t nodes_;
  MinimumCut cut_;
};

}  // namespace shardwise
