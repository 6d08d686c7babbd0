// SPDX-License-Identifier: Apache-2.0
//
// Makes a cost graph smaller by exact steps, and turns its solution into one of the whole graph. Most nodes follow others:
//
//   x - y, y's option is decided by x's        y is merged into x          (an elementwise op and its operand)
//   an option that allows none of a neighbour   is dropped
//   costs[i][j] = a[i] + b[j]                   no edge: a goes to one node, b to the other
//   a node with one or two neighbours           is eliminated: the best of it for each option (pair) of theirs
//
// No node that uses memory is eliminated, as its best option depends on the limit; merged nodes bring their uses along.
// In ten public problems (benchmarks/iopddl.py) with 816 to 56,833 nodes, 214 to 22,806 nodes are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "shardwise/choice/solve/cost_graph.h"

namespace shardwise {

class ReducedGraph {
 public:
  explicit ReducedGraph(const CostGraph& graph);

  // A use of the problem, by option of the node that it came to.
  struct Member {
    size_t use = 0;
    std::vector<uint32_t> options;  // of the node that used it first
  };
  struct Edge {
    size_t a = 0, b = 0;
    std::vector<GraphCost> costs;  // [option of a][option of b]
    bool is_gone = false;
    bool is_waiting = false;
  };

  bool is_possible() const { return is_possible_; }  // false: each pick costs kForbidden
  GraphCost constant() const { return constant_; }   // of nodes that are decided
  bool is_left(size_t node) const { return !nodes_[node].is_gone; }
  std::span<const GraphCost> costs(size_t node) const { return nodes_[node].costs; }
  const std::vector<Member>& members(size_t node) const { return nodes_[node].members; }
  const std::vector<Edge>& edges() const { return edges_; }  // of the problem and new ones; some are gone

  // Completes picks of the nodes that are left, by their options here, to picks of the problem.
  std::vector<uint32_t> expanded(std::vector<uint32_t> picks) const;
  // The picks of the nodes that are left, if these of the problem are among what is left.
  bool reduce(std::span<const uint32_t> picks, std::vector<uint32_t>& reduced) const;

 private:
  struct Node {
    std::vector<GraphCost> costs;
    std::vector<uint32_t> options;   // of the problem, by option
    std::map<size_t, size_t> edges;  // by neighbour
    std::vector<Member> members;
    bool is_gone = false;
    bool is_waiting = false;
  };
  // How the option of a node that is gone follows, by those of the problem.
  struct Step {
    size_t node = 0;
    size_t first = 0, second = 0;   // the nodes that decide it; the node itself: none
    std::vector<uint32_t> options;  // [option of first][option of second]
  };

  GraphCost at(const Edge& edge, size_t node, size_t i, size_t j) const;  // option i of the node, j of the other
  size_t other(const Edge& edge, size_t node) const { return edge.a == node ? edge.b : edge.a; }
  void add_edge(size_t a, size_t b, std::vector<GraphCost> costs);
  void drop_edge(size_t edge);
  void wait(size_t node);
  void wait_with_edges(size_t node);
  void keep_options(size_t node, const std::vector<uint32_t>& kept);
  void drop_impossible(size_t edge, size_t node);
  static void leave(Node& node);
  bool separate(size_t edge);
  bool merge_follower(size_t edge, size_t leader);
  void merge(size_t edge, size_t leader, size_t follower, const std::vector<uint32_t>& follows);
  void look_at_edge(size_t edge);
  void look_at_node(size_t node);
  void decide(size_t node);
  void eliminate_leaf(size_t node);
  void eliminate_link(size_t node);

  const CostGraph& graph_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<Step> steps_;
  std::deque<size_t> edges_waiting_, nodes_waiting_;
  GraphCost constant_ = 0;
  bool is_possible_ = true;
};

}  // namespace shardwise
