// SPDX-License-Identifier: Apache-2.0
//
// Cheaper choices around a known one, by the graph of the program (graph/program_graph.h) and its solution (solve/solve.h):
//
//   Refinement refinement(program, prices, context, is_better);
//   while (const auto found = refinement.around(*best)) best = found;      // null: it finds none
//
// A program that repeats itself is solved with its equal layers as one (solve/folded_graph.h). The graph prices ops alone; a
// choice counts only if it is cheaper as a whole; by time, it may take no more work and hardly more bytes. If that refuses
// the solution of folded layers, which take little time, they are solved again without the ways that work more than the
// known ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "shardwise/choice/choice_prices.h"
#include "shardwise/choice/graph/op_options.h"
#include "shardwise/choice/greedy/walked_program.h"
#include "shardwise/choice/solve/cost_graph.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

class ProgramGraph;

// The picks that a compilation finds for a graph around known ones, with an effort in proportion to the graph.
std::vector<uint32_t> picks_around(const CostGraph& graph, const std::vector<uint32_t>& known,
                                   const std::function<void()>& poll);

class Refinement {
 public:
  using IsBetter = std::function<bool(const Price& found, const Price& known)>;

  // `program.costs` says what counts, times or bytes.
  Refinement(const WalkedProgram& program, ChoicePrices& prices, PassContext& context, IsBetter is_better)
      : program_(program), options_(program), prices_(prices), context_(context), is_better_(std::move(is_better)) {}

  std::shared_ptr<Choice> around(const Choice& known);

 private:
  // Null if the picks are those of the known choice, or make no better one.
  std::shared_ptr<Choice> better(const ProgramGraph& graph, const std::vector<uint32_t>& picks, const Choice& known);

  const WalkedProgram& program_;
  OpOptions options_;
  ChoicePrices& prices_;
  PassContext& context_;
  const IsBetter is_better_;
};

}  // namespace shardwise
