// SPDX-License-Identifier: Apache-2.0
//
// A cost graph in which nodes that look alike are one node, so that equal layers are solved once:
//
//   x1 - y1 - x2 - y2 - … - x36 - y36        x - y, with 36 times the costs, and beside them the nodes near both ends
//
// Nodes look alike if their costs and their known picks are equal, and their edges and neighbours a few steps around. They take
// one option together, so that each solution of the folded graph is one of the whole graph at the same cost. The opposite does
// not hold: picks that differ from layer to layer may cost less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/choice/solve/cost_graph.h"

namespace shardwise {

class FoldedGraph {
 public:
  // A graph without uses of memory, and picks that are known for it.
  FoldedGraph(const CostGraph& graph, std::span<const uint32_t> known);

  // Whether the program repeats itself. Otherwise a few equal nodes are not worth the picks that are lost.
  bool is_repeated() const { return kLeastCopies * known_.size() <= folds_.size(); }
  const CostGraph& graph() const { return graph_; }
  const std::vector<uint32_t>& known() const { return known_; }
  std::vector<uint32_t> expanded(std::span<const uint32_t> picks) const;  // of the whole graph

 private:
  static constexpr size_t kLeastCopies = 4;  // on average
  void add_nodes(const CostGraph& whole);
  void add_edges(const CostGraph& whole);

  CostGraph graph_;
  std::vector<uint32_t> known_;
  std::vector<size_t> folds_;  // by node of the whole graph: the node that it is part of
};

}  // namespace shardwise
