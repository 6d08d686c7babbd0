// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/reduced_graph.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <utility>

namespace shardwise {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kMostEdgeCells = size_t{1} << 20;  // of a new edge

}  // namespace

ReducedGraph::ReducedGraph(const CostGraph& graph) : graph_(graph), nodes_(graph.size()) {
  for (size_t i = 0; i < graph.size(); ++i) {
    Node& node = nodes_[i];
    node.costs.assign(graph.costs(i).begin(), graph.costs(i).end());
    node.options.resize(node.costs.size());
    std::iota(node.options.begin(), node.options.end(), 0);
  }
  for (size_t i = 0; i < graph.uses().size(); ++i) {
    const CostGraph::Use& use = graph.uses()[i];
    // A node that uses the same bytes with every option has nothing to decide about memory.
    if (graph.limit() == CostGraph::kNoLimit || std::ranges::max(use.bytes) == std::ranges::min(use.bytes)) continue;
    nodes_[use.node].members.push_back({i, nodes_[use.node].options});
  }
  for (const CostGraph::Edge& edge : graph.edges()) add_edge(edge.a, edge.b, edge.costs);
  for (size_t i = 0; i < nodes_.size() && is_possible_; ++i) {
    std::vector<uint32_t> possible;
    for (uint32_t k = 0; k < nodes_[i].costs.size(); ++k) {
      if (nodes_[i].costs[k] < kForbidden) possible.push_back(k);
    }
    keep_options(i, possible);
    wait(i);
  }
  while (is_possible_ && !(edges_waiting_.empty() && nodes_waiting_.empty())) {
    if (!edges_waiting_.empty()) {
      const size_t edge = edges_waiting_.front();
      edges_waiting_.pop_front();
      edges_[edge].is_waiting = false;
      if (!edges_[edge].is_gone) look_at_edge(edge);
    } else {
      const size_t node = nodes_waiting_.front();
      nodes_waiting_.pop_front();
      nodes_[node].is_waiting = false;
      if (!nodes_[node].is_gone) look_at_node(node);
    }
  }
}

GraphCost ReducedGraph::at(const Edge& edge, size_t node, size_t i, size_t j) const {
  return edge.a == node ? edge.costs[i * nodes_[edge.b].costs.size() + j]
                        : edge.costs[j * nodes_[edge.b].costs.size() + i];
}

// Two edges between the same nodes become one.
void ReducedGraph::add_edge(size_t a, size_t b, std::vector<GraphCost> costs) {
  const auto [found, is_new] = nodes_[a].edges.try_emplace(b, edges_.size());
  if (is_new) {
    nodes_[b].edges.emplace(a, edges_.size());
    edges_.push_back({a, b, std::move(costs)});
  } else {
    Edge& edge = edges_[found->second];
    const size_t rows = nodes_[a].costs.size(), columns = nodes_[b].costs.size();
    for (size_t i = 0; i < rows; ++i) {
      for (size_t j = 0; j < columns; ++j) {
        GraphCost& sum = edge.costs[edge.a == a ? i * columns + j : j * rows + i];
        sum = add_costs(sum, costs[i * columns + j]);
      }
    }
  }
  Edge& edge = edges_[found->second];
  if (!edge.is_waiting) edges_waiting_.push_back(found->second);
  edge.is_waiting = true;
}

void ReducedGraph::drop_edge(size_t edge) {
  Edge& dropped = edges_[edge];
  nodes_[dropped.a].edges.erase(dropped.b);
  nodes_[dropped.b].edges.erase(dropped.a);
  dropped.is_gone = true;
  dropped.costs = {};
  wait(dropped.a);
  wait(dropped.b);
}

void ReducedGraph::wait(size_t node) {
  if (nodes_[node].is_waiting || nodes_[node].is_gone) return;
  nodes_[node].is_waiting = true;
  nodes_waiting_.push_back(node);
}

void ReducedGraph::wait_with_edges(size_t node) {
  wait(node);
  for (const auto& [neighbour, edge] : nodes_[node].edges) {
    if (!edges_[edge].is_waiting) edges_waiting_.push_back(edge);
    edges_[edge].is_waiting = true;
  }
}

void ReducedGraph::keep_options(size_t node, const std::vector<uint32_t>& kept) {
  Node& chosen = nodes_[node];
  if (kept.size() == chosen.costs.size()) return;
  if (kept.empty()) {
    is_possible_ = false;
    return;
  }
  const auto pick = [&]<class T>(std::vector<T>& values) {
    for (size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
    values.resize(kept.size());
  };
  for (const auto& [neighbour, id] : chosen.edges) {
    Edge& edge = edges_[id];
    const size_t others = nodes_[neighbour].costs.size();
    std::vector<GraphCost> costs;
    costs.reserve(kept.size() * others);
    if (edge.a == node) {
      for (const uint32_t i : kept) {
        costs.insert(costs.end(), edge.costs.begin() + i * others, edge.costs.begin() + (i + 1) * others);
      }
    } else {
      for (size_t j = 0; j < others; ++j) {
        for (const uint32_t i : kept) costs.push_back(edge.costs[j * chosen.costs.size() + i]);
      }
    }
    edge.costs = std::move(costs);
  }
  pick(chosen.costs);
  pick(chosen.options);
  for (Member& member : chosen.members) pick(member.options);
  wait_with_edges(node);
}

// Options of the node that no option of its neighbour allows.
void ReducedGraph::drop_impossible(size_t edge, size_t node) {
  const size_t others = nodes_[other(edges_[edge], node)].costs.size();
  std::vector<uint32_t> possible;
  for (uint32_t i = 0; i < nodes_[node].costs.size(); ++i) {
    for (size_t j = 0; j < others; ++j) {
      if (at(edges_[edge], node, i, j) < kForbidden) {
        possible.push_back(i);
        break;
      }
    }
  }
  keep_options(node, possible);
}

// A node that is gone keeps no data: its step gives its option.
void ReducedGraph::leave(Node& node) {
  node = Node();
  node.is_gone = true;
}

// costs[i][j] = costs[i][0] + (costs[0][j] - costs[0][0])
bool ReducedGraph::separate(size_t id) {
  const Edge& edge = edges_[id];
  Node &a = nodes_[edge.a], &b = nodes_[edge.b];
  const size_t rows = a.costs.size(), columns = b.costs.size();
  if (std::ranges::max(edge.costs) >= kForbidden) return false;
  for (size_t i = 1; i < rows; ++i) {
    for (size_t j = 1; j < columns; ++j) {
      if (edge.costs[i * columns + j] - edge.costs[i * columns] != edge.costs[j] - edge.costs[0]) return false;
    }
  }
  // Neither part is below zero: what b has less than at its first option goes to a, for all of its options.
  GraphCost least = edge.costs[0];
  for (size_t j = 1; j < columns; ++j) least = std::min(least, edge.costs[j]);
  for (size_t i = 0; i < rows; ++i) a.costs[i] = add_costs(a.costs[i], edge.costs[i * columns] + least - edge.costs[0]);
  for (size_t j = 0; j < columns; ++j) b.costs[j] = add_costs(b.costs[j], edge.costs[j] - least);
  drop_edge(id);
  return true;
}

bool ReducedGraph::merge_follower(size_t id, size_t leader) {
  const Edge& edge = edges_[id];
  const size_t follower = other(edge, leader);
  std::vector<uint32_t> follows(nodes_[leader].costs.size(), kNone);
  for (size_t i = 0; i < follows.size(); ++i) {
    for (uint32_t j = 0; j < nodes_[follower].costs.size(); ++j) {
      if (at(edge, leader, i, j) >= kForbidden) continue;
      if (follows[i] != kNone) return false;
      follows[i] = j;
    }
  }
  merge(id, leader, follower, follows);
  return true;
}

void ReducedGraph::merge(size_t id, size_t leader, size_t follower, const std::vector<uint32_t>& follows) {
  Node &to = nodes_[leader], &from = nodes_[follower];
  Step step{follower, leader, leader, std::vector<uint32_t>(graph_.options(leader), 0)};
  for (size_t i = 0; i < follows.size(); ++i) {
    step.options[to.options[i]] = from.options[follows[i]];
    to.costs[i] = add_costs(to.costs[i], add_costs(from.costs[follows[i]], at(edges_[id], leader, i, follows[i])));
  }
  steps_.push_back(std::move(step));
  for (Member& member : from.members) {
    std::vector<uint32_t> options(follows.size());
    for (size_t i = 0; i < follows.size(); ++i) options[i] = member.options[follows[i]];
    to.members.push_back({member.use, std::move(options)});
  }
  drop_edge(id);
  while (!from.edges.empty()) {
    const auto [neighbour, moved] = *from.edges.begin();
    const size_t others = nodes_[neighbour].costs.size();
    std::vector<GraphCost> costs(follows.size() * others);
    for (size_t i = 0; i < follows.size(); ++i) {
      for (size_t j = 0; j < others; ++j) costs[i * others + j] = at(edges_[moved], follower, follows[i], j);
    }
    drop_edge(moved);
    add_edge(leader, neighbour, std::move(costs));
  }
  leave(from);
  std::vector<uint32_t> possible;
  for (uint32_t i = 0; i < to.costs.size(); ++i) {
    if (to.costs[i] < kForbidden) possible.push_back(i);
  }
  keep_options(leader, possible);
}

void ReducedGraph::look_at_edge(size_t id) {
  const size_t a = edges_[id].a, b = edges_[id].b;
  drop_impossible(id, a);
  if (is_possible_) drop_impossible(id, b);
  if (!is_possible_ || separate(id)) return;
  if (!merge_follower(id, a)) merge_follower(id, b);
}

void ReducedGraph::look_at_node(size_t node) {
  if (!nodes_[node].members.empty()) return;
  if (nodes_[node].edges.empty()) {
    decide(node);
  } else if (nodes_[node].edges.size() == 1) {
    eliminate_leaf(node);
  } else if (nodes_[node].edges.size() == 2) {
    const size_t first = nodes_[node].edges.begin()->first, second = nodes_[node].edges.rbegin()->first;
    if (nodes_[first].costs.size() * nodes_[second].costs.size() <= kMostEdgeCells) eliminate_link(node);
  }
}

void ReducedGraph::decide(size_t id) {
  Node& node = nodes_[id];
  const auto best = std::ranges::min_element(node.costs);
  constant_ = add_costs(constant_, *best);
  steps_.push_back({id, id, id, {node.options[static_cast<size_t>(best - node.costs.begin())]}});
  leave(node);
}

void ReducedGraph::eliminate_leaf(size_t id) {
  Node& node = nodes_[id];
  const auto [neighbour, edge] = *node.edges.begin();
  Node& to = nodes_[neighbour];
  Step step{id, neighbour, neighbour, std::vector<uint32_t>(graph_.options(neighbour), 0)};
  for (size_t j = 0; j < to.costs.size(); ++j) {
    GraphCost least = kForbidden;
    for (size_t i = 0; i < node.costs.size(); ++i) {
      const GraphCost cost = add_costs(node.costs[i], at(edges_[edge], id, i, j));
      if (cost >= least) continue;
      least = cost;
      step.options[to.options[j]] = node.options[i];
    }
    to.costs[j] = add_costs(to.costs[j], least);
  }
  steps_.push_back(std::move(step));
  drop_edge(edge);
  leave(node);
  std::vector<uint32_t> possible;
  for (uint32_t j = 0; j < to.costs.size(); ++j) {
    if (to.costs[j] < kForbidden) possible.push_back(j);
  }
  keep_options(neighbour, possible);
}

void ReducedGraph::eliminate_link(size_t id) {
  Node& node = nodes_[id];
  const auto [first, edge] = *node.edges.begin();
  const auto [second, other_edge] = *std::next(node.edges.begin());
  const Node &a = nodes_[first], &b = nodes_[second];
  const size_t rows = a.costs.size(), columns = b.costs.size();
  std::vector<GraphCost> least(rows * columns, kForbidden);
  Step step{id, first, second, std::vector<uint32_t>(graph_.options(first) * graph_.options(second), 0)};
  std::vector<uint32_t> best(rows * columns, 0);
  for (uint32_t k = 0; k < node.costs.size(); ++k) {
    for (size_t i = 0; i < rows; ++i) {
      const GraphCost so_far = add_costs(node.costs[k], at(edges_[edge], id, k, i));
      if (so_far >= kForbidden) continue;
      for (size_t j = 0; j < columns; ++j) {
        const GraphCost cost = add_costs(so_far, at(edges_[other_edge], id, k, j));
        if (cost >= least[i * columns + j]) continue;
        least[i * columns + j] = cost;
        best[i * columns + j] = k;
      }
    }
  }
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      step.options[a.options[i] * graph_.options(second) + b.options[j]] = node.options[best[i * columns + j]];
    }
  }
  steps_.push_back(std::move(step));
  drop_edge(edge);
  drop_edge(other_edge);
  leave(node);
  add_edge(first, second, std::move(least));
}

std::vector<uint32_t> ReducedGraph::expanded(std::vector<uint32_t> picks) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].is_gone) picks[i] = nodes_[i].options[picks[i]];
  }
  for (const Step& step : steps_ | std::views::reverse) {
    size_t at = 0;
    if (step.first != step.node) at = picks[step.first];
    if (step.second != step.first) at = at * graph_.options(step.second) + picks[step.second];
    picks[step.node] = step.options[at];
  }
  return picks;
}

bool ReducedGraph::reduce(std::span<const uint32_t> picks, std::vector<uint32_t>& reduced) const {
  reduced.assign(nodes_.size(), 0);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].is_gone) continue;
    const auto found = std::ranges::find(nodes_[i].options, picks[i]);
    if (found == nodes_[i].options.end()) return false;
    reduced[i] = static_cast<uint32_t>(found - nodes_[i].options.begin());
  }
  return true;
}

}  // namespace shardwise
