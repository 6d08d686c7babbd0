// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/dual_bound.h"

#include <algorithm>
#include <cmath>

namespace shardwise {
namespace {

// A step of prices that gains nothing this often is shortened.
constexpr size_t kPatience = 10;
constexpr double kShorter = 0.7;

double take_least(std::vector<double>& values) {
  const double least = std::ranges::min(values);
  for (double& value : values) value -= least;
  return least;
}

}  // namespace

DualBound::DualBound(const CoreProblem& problem)
    : problem_(problem),
      costs_(problem.size()),
      shares_(problem.size()),
      prices_{std::vector<double>(problem.times(), 0), std::vector<double>(problem.times() + 1, 0),
              std::vector<double>(problem.times() + 1, 0)},
      picks_(problem.size(), 0) {
  std::vector<size_t> before(problem.size(), 0), behind(problem.size(), 0);
  for (const CoreProblem::Edge& edge : problem.edges()) {
    forward_.emplace_back(problem.options(edge.b), 0);
    back_.emplace_back(problem.options(edge.a), 0);
    ++behind[std::min(edge.a, edge.b)];
    ++before[std::max(edge.a, edge.b)];
  }
  for (size_t i = 0; i < problem.size(); ++i) {
    shares_[i] = 1.0 / static_cast<double>(std::max({before[i], behind[i], size_t{1}}));
  }
}

void DualBound::step(double best) {
  set_costs();
  pass_forward();
  double bound = pass_back();
  for (size_t time = 0; time < problem_.times(); ++time) {
    bound += prices_.now[time] * (problem_.base()[time] - problem_.limit());
  }
  ++without_gain_;
  // A gain is one that is worth another step.
  if (bound > bound_) {
    if (!std::isfinite(bound_) || bound > bound_ + 1e-5 * std::abs(bound_)) without_gain_ = 0;
    bound_ = bound;
    prices_.best_before = prices_.before;
  } else if (without_gain_ % kPatience == 0) {
    step_ *= kShorter;
  }
  if (problem_.times() > 0) change_prices(bound, best);
}

void DualBound::set_costs() {
  for (size_t i = 0; i < problem_.size(); ++i) {
    costs_[i] = problem_.node(i).costs;
    problem_.add_prices(i, prices_.before, 1, costs_[i]);
  }
}

// The message of a node with these costs to its neighbour along the edge: what the neighbour pays for each of its options.
double DualBound::send(size_t id, bool is_to_b, std::span<const double> costs, double share) {
  const CoreProblem::Edge& edge = problem_.edges()[id];
  const std::vector<double>& received = is_to_b ? back_[id] : forward_[id];
  std::vector<double>& sent = is_to_b ? forward_[id] : back_[id];
  const std::vector<double>& table = is_to_b ? edge.costs : edge.flipped;
  std::ranges::fill(sent, std::numeric_limits<double>::infinity());
  double* const to = sent.data();
  const size_t count = sent.size();
  const double* row = table.data();
  for (size_t i = 0; i < costs.size(); ++i, row += count) {
    const double own = share * costs[i] - received[i];
    for (size_t j = 0; j < count; ++j) to[j] = std::min(to[j], own + row[j]);
  }
  return take_least(sent);
}

// Picks are the best options beside those that are picked before and the messages of those behind.
void DualBound::pass_forward() {
  for (size_t i = 0; i < problem_.size(); ++i) {
    sum_ = costs_[i];
    picked_ = costs_[i];
    for (const auto& [id, neighbour] : problem_.node(i).neighbours) {
      const std::vector<double>& message = into(id, i);
      for (size_t k = 0; k < sum_.size(); ++k) sum_[k] += message[k];
      const std::span<const double> known =
          neighbour > i ? std::span<const double>(message) : problem_.edges()[id].row(neighbour, picks_[neighbour]);
      for (size_t k = 0; k < picked_.size(); ++k) picked_[k] += known[k];
    }
    picks_[i] = static_cast<uint32_t>(std::ranges::min_element(picked_) - picked_.begin());
    take_least(sum_);
    for (const auto& [id, neighbour] : problem_.node(i).neighbours) {
      if (neighbour > i) send(id, problem_.edges()[id].a == i, sum_, shares_[i]);
    }
  }
}

double DualBound::pass_back() {
  double bound = 0;
  for (size_t i = problem_.size(); i-- > 0;) {
    sum_ = costs_[i];
    for (const auto& [id, neighbour] : problem_.node(i).neighbours) {
      const std::vector<double>& message = into(id, i);
      for (size_t k = 0; k < sum_.size(); ++k) sum_[k] += message[k];
    }
    bound += take_least(sum_);
    for (const auto& [id, neighbour] : problem_.node(i).neighbours) {
      if (neighbour < i) bound += send(id, problem_.edges()[id].a == i, sum_, shares_[i]);
    }
  }
  return bound;
}

// Towards what the picks use more or less than the limit, as far as the gap to the best cost says.
void DualBound::change_prices(double bound, double best) {
  std::vector<double> excess = problem_.used(picks_);
  double square = 0;
  for (size_t time = 0; time < excess.size(); ++time) {
    excess[time] -= problem_.limit();
    if (excess[time] > 0 || prices_.now[time] > 0) square += excess[time] * excess[time];
  }
  if (square == 0) return;
  const double target = std::isfinite(best) ? best : bound + std::abs(bound) / 2 + 1;
  const double length = step_ * std::max(target - bound, 0.0) / square;
  for (size_t time = 0; time < excess.size(); ++time) {
    prices_.now[time] = std::max(0.0, prices_.now[time] + length * excess[time]);
    prices_.before[time + 1] = prices_.before[time] + prices_.now[time];
  }
}

}  // namespace shardwise
