// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/refinement.h"

#include "shardwise/choice/graph/program_graph.h"
#include "shardwise/choice/solve/folded_graph.h"
#include "shardwise/choice/solve/solve.h"

namespace shardwise {
namespace {

uint64_t cells_of(const CostGraph& graph) {
  uint64_t cells = graph.size();
  for (const CostGraph::Edge& edge : graph.edges()) cells += edge.costs.size();
  return cells;
}

// In proportion to the program.
SolveEffort effort_of(const CostGraph& graph) {
  const uint64_t cells = cells_of(graph);
  return {.bound_cells = 30 * cells,
          .bound_patience = 10 * cells,
          .search_cells = 30 * cells,
          .rounds_without_gain = 5,
          .tolerance = 1e-4};
}

// The known picks where there is no solution.
std::vector<uint32_t> solved(const CostGraph& graph, const std::vector<uint32_t>& known,
                             const std::function<void()>& poll) {
  const Solution solution = solve(graph, effort_of(graph), known, poll);
  return solution.is_feasible() ? solution.picks : known;
}

std::vector<uint32_t> solved(const FoldedGraph& folded, const std::function<void()>& poll) {
  return folded.expanded(solved(folded.graph(), folded.known(), poll));
}

}  // namespace

std::vector<uint32_t> picks_around(const CostGraph& graph, const std::vector<uint32_t>& known,
                                   const std::function<void()>& poll) {
  const FoldedGraph folded(graph, known);
  return folded.is_repeated() ? solved(folded, poll) : solved(graph, known, poll);
}

std::shared_ptr<Choice> Refinement::around(const Choice& known) {
  const ProgramGraph graph(program_, options_, known);
  const FoldedGraph folded(graph.costs(), graph.known_picks());
  const CostGraph& solved_graph = folded.is_repeated() ? folded.graph() : graph.costs();
  context_.counters.add("choose.solved_cells", static_cast<int64_t>(cells_of(solved_graph)));
  const std::vector<uint32_t> picks =
      folded.is_repeated() ? solved(folded, context_.poll) : solved(graph.costs(), graph.known_picks(), context_.poll);
  if (!graph.has_other_ops(picks)) return nullptr;
  if (auto found = better(graph, picks, known)) return found;
  return better(graph, picks_around(graph.costs_without_more_work(), graph.known_picks(), context_.poll), known);
}

std::shared_ptr<Choice> Refinement::better(const ProgramGraph& graph, const std::vector<uint32_t>& picks,
                                           const Choice& known) {
  if (!graph.has_other_ops(picks)) return nullptr;
  context_.choice = nullptr;
  greedy_choice(program_, CandidateScope::kSuggested, context_, graph.chosen(picks));
  context_.choice->price = prices_.of(*context_.choice);
  return is_better_(context_.choice->price, known.price) ? context_.choice : nullptr;
}

}  // namespace shardwise
