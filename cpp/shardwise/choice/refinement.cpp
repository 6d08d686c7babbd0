// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/refinement.h"

#include "shardwise/choice/graph/program_graph.h"
#include "shardwise/choice/solve/folded_graph.h"
#include "shardwise/choice/solve/solve.h"

namespace shardwise {
namespace {

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

}  // namespace

std::shared_ptr<Choice> Refinement::around(const Choice& known) {
  const ProgramGraph graph(program_, known);
  const FoldedGraph folded(graph.costs(), graph.known_picks());
  if (!folded.is_repeated()) return better(graph, solved(graph.costs(), graph.known_picks()), known);
  const std::vector<uint32_t> picks = solved(folded);
  if (!graph.has_other_ops(picks)) return nullptr;
  if (auto found = better(graph, picks, known)) return found;
  return better(graph, solved(FoldedGraph(graph.costs_without_more_work(), graph.known_picks())), known);
}

// The known picks where there is no solution.
std::vector<uint32_t> Refinement::solved(const CostGraph& graph, const std::vector<uint32_t>& known) const {
  const Solution solution = solve(graph, effort_of(graph), known, context_.poll);
  return solution.is_feasible() ? solution.picks : known;
}

std::vector<uint32_t> Refinement::solved(const FoldedGraph& folded) const {
  return folded.expanded(solved(folded.graph(), folded.known()));
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
