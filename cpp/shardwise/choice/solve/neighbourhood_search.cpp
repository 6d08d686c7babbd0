// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/neighbourhood_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace shardwise {
namespace {

constexpr double kMostCells = 20'000;  // of one step of an elimination
constexpr size_t kSmallRegion = 64, kSizes = 5;

}  // namespace

NeighbourhoodSearch::NeighbourhoodSearch(const CoreProblem& problem, std::vector<double> prices_before,
                                         SearchState& state)
    : problem_(problem),
      prices_before_(std::move(prices_before)),
      state_(state),
      elimination_(problem),
      all_(problem.size()),
      is_in_region_(problem.size(), false) {
  std::iota(all_.begin(), all_.end(), 0);
}

// All nodes first, and in half of the rounds; else those around some node: 64, 256, … of them.
void NeighbourhoodSearch::choose_region() {
  const size_t step = rounds_++ % (2 * kSizes);
  const size_t count = step % 2 == 0 ? problem_.size() : std::min(problem_.size(), kSmallRegion << step);
  if (count == problem_.size()) {
    region_.nodes = all_;
    return;
  }
  std::vector<size_t>& nodes = region_.nodes;
  nodes.clear();
  std::vector<bool>& seen = is_in_region_;
  for (size_t next = 0; nodes.size() < count;) {
    if (next == nodes.size()) {
      const size_t node = random_.below(problem_.size());
      if (seen[node]) continue;
      seen[node] = true;
      nodes.push_back(node);
    }
    for (const auto& [edge, neighbour] : problem_.node(nodes[next++]).neighbours) {
      if (seen[neighbour] || nodes.size() == count) continue;
      seen[neighbour] = true;
      nodes.push_back(neighbour);
    }
  }
  for (const size_t node : nodes) seen[node] = false;
}

void NeighbourhoodSearch::price_region(double factor) {
  for (const size_t node : region_.nodes) is_in_region_[node] = true;
  region_.costs.resize(region_.nodes.size());
  for (size_t i = 0; i < region_.nodes.size(); ++i) {
    const size_t node = region_.nodes[i];
    std::vector<double>& costs = region_.costs[i];
    costs = problem_.node(node).costs;
    for (const auto& [id, neighbour] : problem_.node(node).neighbours) {
      if (is_in_region_[neighbour]) continue;
      const std::span<const double> row = problem_.edges()[id].row(neighbour, state_.pick(neighbour));
      for (size_t k = 0; k < costs.size(); ++k) costs[k] += row[k];
    }
    problem_.add_prices(node, prices_before_, factor, costs);
  }
  for (const size_t node : region_.nodes) is_in_region_[node] = false;
}

bool NeighbourhoodSearch::round() {
  choose_region();
  const double factor = factor_ * std::exp2(1.6 * random_.uniform() - 0.8);
  price_region(factor);
  const double before = state_.cost();
  const size_t mark = state_.mark();
  const std::vector<uint32_t> best = elimination_.best(region_, state_.picks(), kMostCells, random_);
  other_cells_ += problem_.times() == 0 ? region_.nodes.size() : 8 * problem_.size();
  for (size_t i = 0; i < best.size(); ++i) {
    if (best[i] != state_.pick(region_.nodes[i])) state_.move(region_.nodes[i], best[i]);
  }
  const bool is_better = state_.is_possible() && (state_.is_within_limit() || state_.repair());
  // Without a limit, what is far from the region has nothing to gain.
  if (is_better) state_.descend(problem_.times() == 0 ? region_.nodes : all_);
  if (!is_better || state_.cost() >= before - kLeastGain) {
    state_.undo(mark);
  } else {
    factor_ = std::clamp(0.8 * factor_ + 0.2 * factor, 0.25, 4.0);
  }
  is_optimal_ |= problem_.times() == 0 && region_.nodes.size() == problem_.size() && elimination_.is_exact();
  return state_.cost() < before - kLeastGain;
}

}  // namespace shardwise
