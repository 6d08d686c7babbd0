// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/search_state.h"

#include <algorithm>
#include <tuple>

namespace shardwise {
namespace {

constexpr int kMostRepairs = 60;
// One in so many moves is made before the moves are compared again.
constexpr size_t kPartOfMoves = 20;

}  // namespace

SearchState::SearchState(const CoreProblem& problem, std::vector<uint32_t> picks)
    : problem_(problem),
      picks_(std::move(picks)),
      costs_(problem.size()),
      cost_(problem.cost_of(picks_)),
      used_(problem.used(picks_)) {
  for (size_t i = 0; i < problem.size(); ++i) {
    costs_[i] = problem.node(i).costs;
    for (const auto& [edge, neighbour] : problem.node(i).neighbours) {
      const std::span<const double> row = problem.edges()[edge].row(neighbour, picks_[neighbour]);
      for (size_t k = 0; k < row.size(); ++k) costs_[i][k] += row[k];
    }
  }
}

void SearchState::use(size_t node, size_t from, size_t to) {
  for (const CoreProblem::Use& use : problem_.node(node).uses) {
    const double change = use.bytes[to] - use.bytes[from];
    if (change != 0) used_.add(use.begin, use.end, change);
  }
}

bool SearchState::fits(size_t node, size_t option) {
  const std::vector<CoreProblem::Use>& uses = problem_.node(node).uses;
  const size_t now = picks_[node];
  if (std::ranges::none_of(uses, [&](const auto& use) { return use.bytes[option] > use.bytes[now]; })) return true;
  if (uses.size() == 1) {
    return used_.largest(uses[0].begin, uses[0].end) + uses[0].bytes[option] - uses[0].bytes[now] <= problem_.limit();
  }
  use(node, now, option);
  const bool fits = is_within_limit();
  use(node, option, now);
  return fits;
}

void SearchState::move(size_t node, size_t option) {
  const uint32_t before = picks_[node];
  moves_.emplace_back(node, before);
  cost_ += change(node, option);
  use(node, before, option);
  picks_[node] = static_cast<uint32_t>(option);
  for (const auto& [id, neighbour] : problem_.node(node).neighbours) {
    const CoreProblem::Edge& edge = problem_.edges()[id];
    const std::span<const double> old = edge.row(node, before), now = edge.row(node, option);
    for (size_t k = 0; k < now.size(); ++k) costs_[neighbour][k] += now[k] - old[k];
  }
}

void SearchState::undo(size_t mark) {
  while (moves_.size() > mark) {
    const auto [node, before] = moves_.back();
    move(node, before);
    moves_.resize(moves_.size() - 2);
  }
}

void SearchState::descend(const std::vector<size_t>& nodes) {
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (const size_t node : nodes) {
      double most = -kLeastGain;
      size_t best = picks_[node];
      for (size_t k = 0; k < problem_.options(node); ++k) {
        if (change(node, k) >= most || !fits(node, k)) continue;
        most = change(node, k);
        best = k;
      }
      if (best == picks_[node]) continue;
      move(node, best);
      has_moved = true;
    }
  }
}

// For each node the option that costs least per byte and time that are too much.
std::vector<SearchState::Way> SearchState::ways_to_less() const {
  const std::vector<double> used = problem_.used(picks_);
  std::vector<double> too_much(used.size() + 1, 0);  // times, up to here
  for (size_t t = 0; t < used.size(); ++t) too_much[t + 1] = too_much[t] + (used[t] > problem_.limit() ? 1 : 0);
  std::vector<Way> ways;
  for (size_t i = 0; i < problem_.size(); ++i) {
    Way best{.price = problem_.forbidden()};
    for (uint32_t k = 0; k < problem_.options(i); ++k) {
      double less = 0;
      for (const CoreProblem::Use& use : problem_.node(i).uses) {
        less += (use.bytes[picks_[i]] - use.bytes[k]) * (too_much[use.end] - too_much[use.begin]);
      }
      if (less <= 0 || change(i, k) >= problem_.forbidden() / 2) continue;
      const double price = (std::max(change(i, k), 0.0) + 1) / less;
      if (price < best.price) best = {price, i, k};
    }
    if (best.price < problem_.forbidden()) ways.push_back(best);
  }
  std::ranges::sort(ways, {}, [](const Way& way) { return std::tuple(way.price, way.node); });
  return ways;
}

bool SearchState::repair() {
  for (int round = 0; round < kMostRepairs && !is_within_limit(); ++round) {
    const std::vector<Way> ways = ways_to_less();
    if (ways.empty()) break;
    const size_t most = std::max<size_t>(1, ways.size() / kPartOfMoves);
    for (size_t i = 0; i < ways.size() && i <= most && !is_within_limit(); ++i) {
      const auto& [price, node, option] = ways[i];
      const auto is_needed = [&](const CoreProblem::Use& use) {
        return use.bytes[option] < use.bytes[picks_[node]] && used_.largest(use.begin, use.end) > problem_.limit();
      };
      // The moves before may have made it too expensive.
      if (change(node, option) >= problem_.forbidden() / 2) continue;
      if (std::ranges::any_of(problem_.node(node).uses, is_needed)) move(node, option);
    }
  }
  return is_within_limit();
}

}  // namespace shardwise
