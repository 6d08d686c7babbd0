// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/folded_graph.h"

#include <unordered_map>
#include <utility>

#include "shardwise/choice/solve/random_numbers.h"

namespace shardwise {
namespace {

// How many steps around a node are compared.
constexpr int kSteps = 8;

uint64_t mixed(uint64_t hash, uint64_t value) { return RandomNumbers(hash ^ value).bits(); }

uint64_t hash_of(std::span<const GraphCost> costs, uint64_t seed) {
  uint64_t hash = mixed(seed, costs.size());
  for (const GraphCost cost : costs) hash = mixed(hash, static_cast<uint64_t>(cost));
  return hash;
}

// By node: what it looks like. Neighbours are summed up, as they have no order.
std::vector<uint64_t> looks_of(const CostGraph& graph, std::span<const uint32_t> known) {
  std::vector<uint64_t> looks(graph.size()), edges;
  for (size_t i = 0; i < looks.size(); ++i) looks[i] = hash_of(graph.costs(i), known[i]);
  edges.reserve(graph.edges().size());
  for (const CostGraph::Edge& edge : graph.edges()) edges.push_back(hash_of(edge.costs, 0));
  std::vector<uint64_t> around(looks.size());
  for (int step = 0; step < kSteps; ++step) {
    around.assign(looks.size(), 0);
    for (size_t e = 0; e < edges.size(); ++e) {
      const auto& [a, b, costs] = graph.edges()[e];
      around[a] += mixed(mixed(edges[e], 1), looks[b]);
      around[b] += mixed(mixed(edges[e], 2), looks[a]);
    }
    for (size_t i = 0; i < looks.size(); ++i) looks[i] = mixed(looks[i], around[i]);
  }
  return looks;
}

struct Look {
  uint64_t hash;
  size_t options;
  uint32_t known;
  friend bool operator==(const Look&, const Look&) = default;
};
struct HashOfLook {
  size_t operator()(const Look& look) const { return look.hash; }
};

}  // namespace

FoldedGraph::FoldedGraph(const CostGraph& whole, std::span<const uint32_t> known) {
  const std::vector<uint64_t> looks = looks_of(whole, known);
  std::unordered_map<Look, size_t, HashOfLook> numbers;
  folds_.reserve(whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    const auto [found, is_new] = numbers.try_emplace({looks[i], whole.options(i), known[i]}, numbers.size());
    if (is_new) known_.push_back(known[i]);
    folds_.push_back(found->second);
  }
  add_nodes(whole);
  if (is_repeated()) add_edges(whole);
}

void FoldedGraph::add_nodes(const CostGraph& whole) {
  std::vector<std::vector<GraphCost>> sums(known_.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<GraphCost>& sum = sums[folds_[i]];
    sum.resize(whole.options(i), 0);
    for (size_t k = 0; k < sum.size(); ++k) sum[k] = add_costs(sum[k], whole.costs(i)[k]);
  }
  for (std::vector<GraphCost>& sum : sums) graph_.add_node(std::move(sum));
}

void FoldedGraph::add_edges(const CostGraph& whole) {
  struct Sum {
    size_t a, b;
    std::vector<GraphCost> costs;
  };
  std::vector<Sum> sums;  // in the order of their first edges
  std::unordered_map<uint64_t, size_t> numbers;
  for (const auto& [a, b, costs] : whole.edges()) {
    const size_t from = folds_[a], to = folds_[b];
    const auto [found, is_new] = numbers.try_emplace(uint64_t{from} << 32 | to, sums.size());
    if (is_new) sums.push_back({from, to, std::vector<GraphCost>(costs.size(), 0)});
    std::vector<GraphCost>& sum = sums[found->second].costs;
    for (size_t k = 0; k < sum.size(); ++k) sum[k] = add_costs(sum[k], costs[k]);
  }
  for (Sum& sum : sums) graph_.add_edge(sum.a, sum.b, std::move(sum.costs));
}

std::vector<uint32_t> FoldedGraph::expanded(std::span<const uint32_t> picks) const {
  std::vector<uint32_t> whole;
  whole.reserve(folds_.size());
  for (const size_t fold : folds_) whole.push_back(picks[fold]);
  return whole;
}

}  // namespace shardwise
