// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/solve/solve.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "shardwise/choice/solve/core_problem.h"
#include "shardwise/choice/solve/dual_bound.h"
#include "shardwise/choice/solve/enumeration.h"
#include "shardwise/choice/solve/neighbourhood_search.h"
#include "shardwise/choice/solve/reduced_graph.h"

namespace shardwise {
namespace {

constexpr int kStepsOfProof = 12;
constexpr size_t kStepsBetweenPicks = 5;
// Steps of the bound without a gain, whatever they cost.
constexpr uint64_t kFewestWithoutGain = 5, kMostWithoutGain = 3000;

class Solver {
 public:
  Solver(const CostGraph& graph, const SolveEffort& effort, const std::function<void()>& poll)
      : graph_(graph), effort_(effort), poll_(poll) {}

  Solution run(std::vector<uint32_t> start) {
    if (!start.empty()) {
      graph_.check(start);
      take(std::move(start));
      if (graph_.limit() == CostGraph::kNoLimit && best_.is_feasible() && is_proven()) return std::move(best_);
    }
    reduced_.emplace(graph_);
    if (!reduced_->is_possible()) {
      best_.bound = kForbidden;
      return std::move(best_);
    }
    const CoreProblem problem(graph_, *reduced_);
    const std::vector<double>& base = problem.base();
    if (!base.empty() && std::ranges::max(base) > problem.limit()) {
      best_.bound = kForbidden;
      return std::move(best_);
    }
    if (problem.size() == 0) {
      take(reduced_->expanded(std::vector<uint32_t>(graph_.size(), 0)));
      best_.bound = best_.cost;
    } else if (is_enumerable(problem)) {
      enumerate_all(problem);
    } else {
      search(problem);
    }
    return std::move(best_);
  }

 private:
  // Whether a few steps of the bound show that what is known already is best. They take the time of the exact steps alone.
  bool is_proven() {
    const CoreProblem whole(graph_);
    DualBound dual(whole);
    for (int step = 0; step < kStepsOfProof && !is_optimal(); ++step) {
      poll();
      dual.step(static_cast<double>(best_.cost));
      take_bound(dual.bound());
    }
    return is_optimal();
  }
  double constant() const { return reduced_ ? static_cast<double>(reduced_->constant()) : 0; }

  void poll() const {
    if (poll_) poll_();
  }

  // Picks of the problem, if they are better.
  void take(std::vector<uint32_t> picks) {
    const GraphCost cost = graph_.cost_of(picks);
    if (cost >= best_.cost || (graph_.limit() != CostGraph::kNoLimit && graph_.peak_of(picks) > graph_.limit())) return;
    best_.cost = cost;
    best_.picks = std::move(picks);
  }
  void take_core(const CoreProblem& problem, const std::vector<uint32_t>& picks) {
    std::vector<uint32_t> all(graph_.size(), 0);
    for (size_t i = 0; i < problem.size(); ++i) all[problem.node(i).id] = picks[i];
    take(reduced_->expanded(std::move(all)));
  }
  // Costs are integers, so that a bound is one, too.
  void take_bound(double bound) {
    const double all = std::ceil(bound + constant() - 1e-6 * std::max(1.0, std::abs(bound)) - 1e-3);
    if (all > static_cast<double>(best_.bound)) {
      best_.bound = std::min(static_cast<GraphCost>(std::min(all, static_cast<double>(kForbidden))), best_.cost);
    }
  }
  bool is_optimal() const {
    return best_.cost <= best_.bound || (best_.is_feasible() && is_near_bound(static_cast<double>(best_.cost)));
  }
  bool is_near_bound(double cost) const { return cost - static_cast<double>(best_.bound) <= effort_.tolerance * cost; }

  void enumerate_all(const CoreProblem& problem) {
    const std::vector<uint32_t> picks = cheapest_by_enumeration(problem);
    if (!picks.empty()) take_core(problem, picks);
    best_.bound = best_.cost;
  }

  std::vector<uint32_t> in_core(const CoreProblem& problem) const {
    std::vector<uint32_t> all, picks;
    if (best_.picks.empty() || !reduced_->reduce(best_.picks, all)) return {};
    for (size_t i = 0; i < problem.size(); ++i) picks.push_back(all[problem.node(i).id]);
    return picks;
  }

  void search(const CoreProblem& problem) {
    DualBound dual(problem);
    std::vector<uint32_t> best = in_core(problem);
    double cost = best.empty() ? std::numeric_limits<double>::infinity() : problem.cost_of(best);
    std::vector<size_t> all(problem.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    const uint64_t cells_of_step = 2 * problem.cells() + 8 * problem.size() + problem.times() + 1;
    const uint64_t patience = std::clamp(effort_.bound_patience / cells_of_step, kFewestWithoutGain, kMostWithoutGain);
    for (uint64_t step = 0; step * cells_of_step < effort_.bound_cells && dual.steps_without_gain() < patience;
         ++step) {
      poll();
      dual.step(cost);
      take_bound(dual.bound());
      if (is_optimal()) return;
      if (step % kStepsBetweenPicks != 0) continue;
      SearchState state(problem, dual.picks());
      if (!state.is_possible() || !(state.is_within_limit() || state.repair())) continue;
      state.descend(all);
      if (!state.is_possible() || state.cost() >= cost) continue;
      cost = state.cost();
      best = state.picks();
      take_core(problem, best);
    }
    if (best.empty()) best = dual.picks();
    improve(problem, dual.prices_before(), std::move(best));
  }

  void improve(const CoreProblem& problem, const std::vector<double>& prices_before, std::vector<uint32_t> picks) {
    SearchState state(problem, std::move(picks));
    NeighbourhoodSearch rounds(problem, prices_before, state);
    for (uint32_t without_gain = 0;
         rounds.cells() < effort_.search_cells && without_gain < effort_.rounds_without_gain;) {
      poll();
      without_gain = rounds.round() ? 0 : without_gain + 1;
      if (rounds.is_optimal() || is_near_bound(state.cost() + constant())) break;
    }
    take_core(problem, state.picks());
    if (rounds.is_optimal()) best_.bound = best_.cost;
  }

  const CostGraph& graph_;
  const SolveEffort& effort_;
  const std::function<void()>& poll_;
  std::optional<ReducedGraph> reduced_;
  Solution best_;
};

}  // namespace

Solution solve(const CostGraph& graph, const SolveEffort& effort, std::vector<uint32_t> start,
               const std::function<void()>& poll) {
  return Solver(graph, effort, poll).run(std::move(start));
}

}  // namespace shardwise
