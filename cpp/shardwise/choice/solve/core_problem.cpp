// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/core_problem.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardwise {
namespace {

double largest_of(std::span<const GraphCost> costs) {
  GraphCost largest = 0;
  for (const GraphCost cost : costs) {
    if (cost < kForbidden) largest = std::max(largest, cost);
  }
  return static_cast<double>(largest);
}

}  // namespace

CoreProblem::CoreProblem(const CostGraph& graph, const ReducedGraph& reduced)
    : limit_(static_cast<double>(graph.limit())) {
  std::vector<size_t> number(graph.size(), 0);
  for (size_t i = 0; i < graph.size(); ++i) {
    if (!reduced.is_left(i)) continue;
    number[i] = nodes_.size();
    add_node(i, reduced.costs(i));
  }
  for (const ReducedGraph::Edge& edge : reduced.edges()) forbidden_ += largest_of(edge.costs);
  for (const ReducedGraph::Edge& edge : reduced.edges()) {
    if (!edge.is_gone) add_edge(number[edge.a], number[edge.b], edge.costs);
  }
  if (graph.limit() == CostGraph::kNoLimit) return;
  add_times(graph);
  add_uses(graph, reduced);
}

CoreProblem::CoreProblem(const CostGraph& graph) : limit_(static_cast<double>(graph.limit())) {
  for (size_t i = 0; i < graph.size(); ++i) add_node(i, graph.costs(i));
  for (const CostGraph::Edge& edge : graph.edges()) forbidden_ += largest_of(edge.costs);
  for (const CostGraph::Edge& edge : graph.edges()) add_edge(edge.a, edge.b, edge.costs);
}

void CoreProblem::add_node(size_t id, std::span<const GraphCost> costs) {
  Node& node = nodes_.emplace_back();
  node.id = id;
  node.costs.assign(costs.begin(), costs.end());
  forbidden_ += largest_of(costs);
}

void CoreProblem::add_edge(size_t a, size_t b, std::span<const GraphCost> costs) {
  Edge& edge = edges_.emplace_back();
  edge.a = a;
  edge.b = b;
  const size_t rows = options(a), columns = options(b);
  edge.options_of_a = rows;
  edge.costs.resize(rows * columns);
  edge.flipped.resize(rows * columns);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      const GraphCost cost = costs[i * columns + j];
      edge.costs[i * columns + j] = cost < kForbidden ? static_cast<double>(cost) : forbidden_;
      edge.flipped[j * rows + i] = edge.costs[i * columns + j];
    }
  }
  nodes_[a].neighbours.push_back({edges_.size() - 1, b});
  nodes_[b].neighbours.push_back({edges_.size() - 1, a});
  cells_ += edge.costs.size();
}

// The last time before something ends, if something has begun since the one before.
void CoreProblem::add_times(const CostGraph& graph) {
  std::map<int64_t, std::pair<bool, bool>> borders;  // begins, ends
  for (const CostGraph::Use& use : graph.uses()) {
    borders[use.begin].first = true;
    borders[use.end].second = true;
  }
  bool has_begun = false;
  for (const auto& [time, border] : borders) {
    if (border.second && has_begun) {
      times_.push_back(time - 1);
      has_begun = false;
    }
    has_begun |= border.first;
  }
}

size_t CoreProblem::at(int64_t time) const {
  return static_cast<size_t>(std::ranges::lower_bound(times_, time) - times_.begin());
}

void CoreProblem::add_uses(const CostGraph& graph, const ReducedGraph& reduced) {
  std::vector<double> changes(times_.size() + 1, 0);
  const auto add_base = [&](size_t begin, size_t end, double bytes) {
    changes[begin] += bytes;
    changes[end] -= bytes;
  };
  std::vector<bool> is_member(graph.uses().size(), false);
  for (Node& node : nodes_) {
    std::map<std::pair<size_t, size_t>, std::vector<double>> sums;
    for (const ReducedGraph::Member& member : reduced.members(node.id)) {
      const CostGraph::Use& use = graph.uses()[member.use];
      is_member[member.use] = true;
      std::vector<double>& sum = sums[{at(use.begin), at(use.end)}];
      sum.resize(node.costs.size(), 0);
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(use.bytes[member.options[i]]);
    }
    for (auto& [span, bytes] : sums) {
      const double least = std::ranges::min(bytes);
      add_base(span.first, span.second, least);
      for (double& each : bytes) each -= least;
      if (std::ranges::max(bytes) > 0) node.uses.push_back({span.first, span.second, std::move(bytes)});
    }
  }
  // Those of nodes that are decided have the same bytes with each option.
  for (size_t i = 0; i < is_member.size(); ++i) {
    const CostGraph::Use& use = graph.uses()[i];
    if (!is_member[i]) add_base(at(use.begin), at(use.end), static_cast<double>(use.bytes.front()));
  }
  base_.resize(times_.size());
  double used = 0;
  for (size_t i = 0; i < base_.size(); ++i) base_[i] = used += changes[i];
}

double CoreProblem::cost_of(std::span<const uint32_t> picks) const {
  double sum = 0;
  for (size_t i = 0; i < size(); ++i) sum += nodes_[i].costs[picks[i]];
  for (const Edge& edge : edges_) sum += edge.costs[picks[edge.a] * options(edge.b) + picks[edge.b]];
  return sum;
}

std::vector<double> CoreProblem::used(std::span<const uint32_t> picks) const {
  std::vector<double> changes(times() + 1, 0);
  for (size_t i = 0; i < size(); ++i) {
    for (const Use& use : nodes_[i].uses) {
      changes[use.begin] += use.bytes[picks[i]];
      changes[use.end] -= use.bytes[picks[i]];
    }
  }
  double sum = 0;
  for (size_t time = 0; time < times(); ++time) {
    sum += changes[time];
    changes[time] = sum + base_[time];
  }
  changes.resize(times());
  return changes;
}

void CoreProblem::add_prices(size_t node, std::span<const double> prices_before, double factor,
                             std::vector<double>& costs) const {
  for (const Use& use : nodes_[node].uses) {
    const double price = factor * (prices_before[use.end] - prices_before[use.begin]);
    if (price == 0) continue;
    for (size_t i = 0; i < costs.size(); ++i) costs[i] += price * use.bytes[i];
  }
}

}  // namespace shardwise
