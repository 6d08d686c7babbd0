// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choose.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/choice_prices.h"
#include "shardwise/choice/choice_text.h"
#include "shardwise/choice/graph/program_graph.h"
#include "shardwise/choice/greedy/greedy_walk.h"
#include "shardwise/choice/solve/solve.h"
#include "shardwise/choice/unify_meshes.h"
#include "shardwise/choice/verify_choice.h"
#include "shardwise/cost/hardware_json.h"

namespace shardwise {
namespace {

// A walk sees an op and not the graph, so that what is best for each op need not be best for all of them: by time, the
// cheapest of several walks is taken. That of bytes is among them, so no other objective finds a faster program.
struct Walk {
  bool is_by_time;
  CandidateScope scope;
};
constexpr Walk kWalks[] = {
    {true, CandidateScope::kSuggested}, {true, CandidateScope::kAll}, {false, CandidateScope::kSuggested}};

std::span<const Walk> walks(Objective objective) {
  return objective == Objective::kTime ? std::span(kWalks) : std::span(kWalks).last(1);
}

// Reports list the ways of the walk that looks at most.
void explain_by(const Choice& widest, Choice& best) {
  if (&widest == &best) return;
  best.ways = widest.ways;
  for (const auto& [op, next] : widest.next_best) {
    if (widest.ops[op.index] == best.ops[op.index]) best.next_best[op] = next;
  }
}

// Where messages take time by themselves, that of a chain is in its price.
bool has_latency(const Hardware& hardware) {
  return std::ranges::any_of(hardware.tiers, [](const Tier& tier) { return tier.latency_ps > 0; });
}

// Less of what counts, and no more of the rest: the graph prices ops alone, so that it does not see what passes behind it
// save, such as chains of exchanges that become one.
bool is_better(const Price& found, const Price& known, Objective objective) {
  if (found.bytes > known.bytes || found.work > known.work) return false;
  return objective == Objective::kBytes ? found.bytes < known.bytes : found.ps < known.ps;
}

// In proportion to the program.
SolveEffort effort_of(const CostGraph& graph) {
  uint64_t cells = graph.size();
  for (const CostGraph::Edge& edge : graph.edges()) cells += edge.costs.size();
  return {.bound_cells = 30 * cells,
          .bound_patience = 10 * cells,
          .search_cells = 30 * cells,
          .rounds_without_gain = 5,
          .tolerance = 1e-4};
}

// The choice of the whole graph around a known one, if it is cheaper.
std::shared_ptr<Choice> refined_choice(const WalkedProgram& program, const Choice& known, ChoicePrices& prices,
                                       PassContext& context) {
  program.costs.set_are_times(context.options.objective == Objective::kTime);
  const ProgramGraph graph(program, known);
  const Solution solution = solve(graph.costs(), effort_of(graph.costs()), graph.known_picks(), context.poll);
  if (!solution.is_feasible() || !graph.has_other_ops(solution.picks)) return nullptr;
  context.choice = nullptr;
  greedy_choice(program, CandidateScope::kSuggested, context, graph.chosen(solution.picks));
  context.choice->price = prices.of(*context.choice);
  return is_better(context.choice->price, known.price, context.options.objective) ? context.choice : nullptr;
}

}  // namespace

Module choose(Module module, PassContext& context) {
  // Before placements are read: afterwards, only real differences of meshes are left.
  unify_meshes(module);
  const HardwarePtr hardware = hardware_called(context.options.hardware);
  const Objective objective = context.options.objective;
  const bool is_by_bytes = objective == Objective::kBytes;
  // By time, the bytes only break ties, and should not jump where the devices become more than the elements.
  Costs costs(module, hardware, is_by_bytes || has_latency(*hardware), !is_by_bytes);
  const CallGraph calls(module);
  const OpKeys keys(module, calls);
  ProgramPlacements placements(module);
  const ProgramLinearity linearity(module);
  const RequestedSums requested(module, linearity, placements);
  const WalkedProgram program{module, calls, keys, linearity, placements, requested, costs};
  ChoicePrices prices(module, placements, costs);
  std::shared_ptr<Choice> best;
  std::shared_ptr<Choice> widest;  // by the walk that looks at most
  const auto run = [&](const Walk& walk) {
    context.choice = nullptr;
    costs.set_are_times(walk.is_by_time);
    greedy_choice(program, walk.scope, context);
    context.choice->price = prices.of(*context.choice);
    if (widest == nullptr || walk.scope == CandidateScope::kAll) widest = context.choice;
  };
  for (const Walk& walk : walks(objective)) {
    run(walk);
    if (best == nullptr || context.choice->price < best->price) best = context.choice;
  }
  if (const auto refined = refined_choice(program, *best, prices, context)) best = refined;
  const bool is_asked = context.pinned != nullptr && !context.pinned->asked.empty();
  if (is_asked && objective == Objective::kBytes) run({false, CandidateScope::kAll});
  context.choice = best;
  explain_by(*widest, *best);
  best->work = prices.work(*best);
  if (settings().verify) verify_choice(module, *best);
  requested.warn_of_refused(*best, context.warnings);
  context.counters.add("choose.plans", costs.planner().plans());
  context.counters.add("choose.new_plans", costs.planner().new_plans());
  return module;
}

}  // namespace shardwise
