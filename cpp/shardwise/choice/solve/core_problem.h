// SPDX-License-Identifier: Apache-2.0
//
// The nodes that a reduction leaves (reduced_graph.h), as arrays for the searches: nodes are numbered from 0, each edge has
// its costs in both orders, and times are those at which the most nodes are live.
//
//   uses   [0, 5)  [2, 5)  [5, 9)        times 0 to 4 and 5 to 8: two of them, 4 -> 0 and 8 -> 1, bound all others
//
// Numbers are doubles: exact up to 2^53, beside `forbidden()`, which is above the sum of all that can be paid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/choice/solve/reduced_graph.h"

namespace shardwise {

class CoreProblem {
 public:
  struct Edge {
    size_t a = 0, b = 0;
    std::vector<double> costs;    // [option of a][option of b]
    std::vector<double> flipped;  // [option of b][option of a]
    // Row of the other node's options for an option of this one.
    std::span<const double> row(size_t node, size_t option) const {
      const size_t others = (node == a ? costs.size() / options_of_a : options_of_a);
      return std::span(node == a ? costs : flipped).subspan(option * others, others);
    }
    size_t options_of_a = 0;
  };
  struct Neighbour {
    size_t edge = 0, node = 0;
  };
  // Memory of a node at times begin <= time < end: by option, the least is 0 and part of `base`.
  struct Use {
    size_t begin = 0, end = 0;
    std::vector<double> bytes;
  };
  struct Node {
    size_t id = 0;  // in the problem
    std::vector<double> costs;
    std::vector<Neighbour> neighbours;
    std::vector<Use> uses;
  };

  CoreProblem(const CostGraph& graph, const ReducedGraph& reduced);
  // All of a problem without a limit, as it is.
  explicit CoreProblem(const CostGraph& graph);

  size_t size() const { return nodes_.size(); }
  const Node& node(size_t i) const { return nodes_[i]; }
  size_t options(size_t i) const { return nodes_[i].costs.size(); }
  const std::vector<Edge>& edges() const { return edges_; }
  size_t times() const { return base_.size(); }
  const std::vector<double>& base() const { return base_; }  // bytes that are used with any options, by time
  double limit() const { return limit_; }
  double forbidden() const { return forbidden_; }
  size_t cells() const { return cells_; }  // of all edges

  double cost_of(std::span<const uint32_t> picks) const;
  std::vector<double> used(std::span<const uint32_t> picks) const;  // by time
  // The costs of a node, with those of its memory at a price per byte up to each time (prices_before[time]).
  void add_prices(size_t node, std::span<const double> prices_before, double factor, std::vector<double>& costs) const;

 private:
  void add_node(size_t id, std::span<const GraphCost> costs);
  void add_edge(size_t a, size_t b, std::span<const GraphCost> costs);
  void add_times(const CostGraph& graph);
  void add_uses(const CostGraph& graph, const ReducedGraph& reduced);
  size_t at(int64_t time) const;

  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<int64_t> times_;
  std::vector<double> base_;
  double limit_ = 0, forbidden_ = 1;
  size_t cells_ = 0;
};

}  // namespace shardwise
