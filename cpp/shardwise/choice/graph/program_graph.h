// SPDX-License-Identifier: Apache-2.0
//
// A program as a cost graph (solve/cost_graph.h), around a choice that is known. Ops that are chosen one by one are nodes,
// with their options (op_options.h); all others, such as loops and annotations, stay as they are.
//
//   %0 = dot %x, %w        node 0     its options' compute, and the moves of %x and %w, which are where they are
//   %1 = tanh %0           node 1     edge 0 - 1: the move of %0 from where an option of node 0 makes it to where one of
//   %2 = dot %0, %v        node 2     node 1 takes it, and edge 0 - 2 alike
//
// Two users of %0 that may need it in one placement share its move: the version is a node of its own, absent or present,
// which is paid once and which both need.
//
//   const ProgramGraph graph(program, options, known);
//   const Solution solution = solve(graph.costs(), effort, graph.known_picks());
//   const GivenChoices given = graph.chosen(solution.picks);      // what a walk is to follow (greedy/greedy_walk.h)
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/choice/graph/op_options.h"
#include "shardwise/choice/graph/wanted_placements.h"
#include "shardwise/choice/greedy/greedy_walk.h"
#include "shardwise/choice/solve/cost_graph.h"

namespace shardwise {

class ProgramGraph {
 public:
  // `program.costs` says what counts, times or bytes. `options`: of the program; the graph refers to them.
  ProgramGraph(const WalkedProgram& program, OpOptions& options, const Choice& known);

  const CostGraph& costs() const { return graph_; }
  CostGraph costs_without_more_work() const;  // only of options that work no more than the known ones
  const std::vector<uint32_t>& known_picks() const { return known_picks_; }
  // The choices of the ops that are nodes.
  GivenChoices chosen(const std::vector<uint32_t>& picks) const;
  bool has_other_ops(const std::vector<uint32_t>& picks) const;  // than the known choice

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Node {
    OpId op;  // none: a version
    const OptionList* list = nullptr;
    std::vector<GraphCost> costs;
  };
  struct Home {
    size_t node = kNone;  // that makes the value
    size_t result = 0;    // of its op
    PlacementId fixed;    // if there is no node
    RegionId region;
    bool is_constant = false, is_known = false;
  };
  // A user of a value: all operands of one op that are this value.
  struct Need {
    size_t node = kNone;
    std::vector<uint32_t> operands;  // of its op
    PlacementId fixed;               // if there is no node
    RegionId region;
  };
  class ValueEdges;

  void add_function(const Function& function);
  void add_ops(RegionId region, const Function& function);
  void add_op(const OpView& op, const Function& function);
  void add_loop(const OpView& op, const Function& function);
  void add_branches(const OpView& op, const Function& function);
  void add_fixed(const OpView& op);
  void add_node(const OpView& op, const Function& function);
  bool is_of_wide_sum(const OpView& op) const;
  OpOptions::Places places(const OpView& op) const;
  std::span<const PlacementId> placements(const Home& home) const;  // by option

  void set_home(ValueId value, PlacementId placement, RegionId region);
  void add_need(ValueId value, PlacementId placement, RegionId region);
  void add_needs(const OpView& op, size_t node);

  RegionId region_of_version(const Home& home, RegionId user) const;
  GraphCost cost_of_runs(RegionId region, const Cost& cost) const;
  GraphCost move(ValueId value, PlacementId from, PlacementId to, RegionId user);
  void add_value(ValueId value);
  void make_graph();

  const WalkedProgram& program_;
  const Choice& known_;
  const ModuleExecutions executions_;
  const WantedPlacements wanted_;
  OpOptions& options_;
  std::vector<size_t> named_;  // by op: 1 if it is chosen alone
  std::vector<Node> nodes_;
  std::vector<Home> homes_;               // by value
  std::vector<std::vector<Need>> needs_;  // by value
  std::vector<CostGraph::Edge> edges_;
  CostGraph graph_;
  std::vector<uint32_t> known_picks_;
};

}  // namespace shardwise
