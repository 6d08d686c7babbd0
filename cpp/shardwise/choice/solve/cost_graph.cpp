// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/cost_graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

void check_costs(std::span<const GraphCost> costs, size_t count, const char* what) {
  if (costs.size() != count) {
    fail<ShapeError>("solve", str(what, " must have ", count, " numbers, one per option"), str(costs.size()));
  }
  const auto negative = std::ranges::find_if(costs, [](GraphCost cost) { return cost < 0; });
  if (negative != costs.end()) fail<ShapeError>("solve", str(what, " must not be below zero"), str(*negative));
}

}  // namespace

size_t CostGraph::add_node(std::vector<GraphCost> costs) {
  if (costs.empty()) fail<ShapeError>("solve", "a node must have an option", "none");
  check_costs(costs, costs.size(), "the costs of a node");
  nodes_.push_back(std::move(costs));
  return nodes_.size() - 1;
}

void CostGraph::add_edge(size_t a, size_t b, std::vector<GraphCost> costs) {
  if (a >= size() || b >= size()) fail<ShapeError>("solve", "an edge must be between nodes", str(a, " and ", b));
  check_costs(costs, options(a) * options(b), "the costs of an edge");
  if (a != b) {
    edges_.push_back({a, b, std::move(costs)});
    return;
  }
  for (size_t i = 0; i < options(a); ++i) nodes_[a][i] = add_costs(nodes_[a][i], costs[i * options(a) + i]);
}

void CostGraph::add_use(size_t node, int64_t begin, int64_t end, std::vector<int64_t> bytes) {
  if (node >= size()) fail<ShapeError>("solve", "memory must be used by a node", str(node));
  check_costs(bytes, options(node), "the bytes of a use");
  if (begin < end) uses_.push_back({node, begin, end, std::move(bytes)});
}

void CostGraph::check(std::span<const uint32_t> picks) const {
  if (picks.size() != size())
    fail<ShapeError>("solve", str("picks must be ", size(), ", one per node"), str(picks.size()));
  for (size_t i = 0; i < size(); ++i) {
    if (picks[i] >= options(i)) {
      fail<ShapeError>("solve", str("the pick of node ", i, " must be below ", options(i)), str(picks[i]));
    }
  }
}

GraphCost CostGraph::cost_of(std::span<const uint32_t> picks) const {
  GraphCost sum = 0;
  for (size_t i = 0; i < size(); ++i) sum = add_costs(sum, nodes_[i][picks[i]]);
  for (const Edge& edge : edges_) {
    sum = add_costs(sum, edge.costs[picks[edge.a] * options(edge.b) + picks[edge.b]]);
  }
  return sum;
}

int64_t CostGraph::peak_of(std::span<const uint32_t> picks) const {
  std::map<int64_t, int64_t> changes;
  for (const Use& use : uses_) {
    changes[use.begin] += use.bytes[picks[use.node]];
    changes[use.end] -= use.bytes[picks[use.node]];
  }
  int64_t used = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, used += change);
  return peak;
}

}  // namespace shardwise
