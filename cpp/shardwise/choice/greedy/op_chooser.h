// SPDX-License-Identifier: Apache-2.0
//
// Chooses how one op is computed by the bytes that each candidate moves, inside methods too (choose.h has the rules):
//
//   OpChooser chooser(module, versions, placements, planner, choice, deferred, options);
//   const OpChoice best = chooser.choose(dot, rule);
//   best.operands[0]      // the placement in which it takes operand 0
//
// The greedy walk asks it for one op after another, each time with its operands where they are by then.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/choice/candidates/candidate.h"
#include "shardwise/choice/dry_run.h"
#include "shardwise/choice/greedy/heuristics.h"

namespace shardwise {

class OpChooser {
 public:
  // The module's use lists are built, so it is not const.
  OpChooser(Module& module, Versions& versions, ProgramPlacements& placements, ReshardPlanner& planner,
            ChoiceInProgress& choice, const DeferredReductions& deferred, const CompileOptions& options)
      : module_(module),
        versions_(versions),
        placements_(placements),
        planner_(planner),
        choice_(choice),
        deferred_(deferred),
        objective_(options.objective),
        dry_runs_(module) {}

  void enter_function(const Function& function) { function_ = &function; }
  // For an op of that function: the cheapest candidate, or the one that is pinned.
  OpChoice choose(const OpView& op, const ShardingRule& rule);

 private:
  struct Rank;
  Candidate cheapest(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings, const Pending& pending);
  // The candidate that reads like `pinned`. Throws ShardingError if there is none.
  OpChoice choose_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned);
  std::optional<TensorSharding> sharding_of_text(std::string_view text) const;
  ChosenOp as_printed(ChosenOp entry) const;
  std::optional<PlacementId> placement_of(const std::string& text, TypeId type) const;
  std::optional<std::vector<PlacementId>> placements_of(const OpView& op, const ChosenOp& pinned) const;
  void add_pinned(const std::vector<PlacementId>& placed, const ShardingRule& rule, const Pending& pending,
                  ComputeShardings& shardings);
  std::optional<OpChoice> find_in_all(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned,
                                      const std::vector<PlacementId>& placed, const Pending& pending);
  ChosenOp described(const OpView& op, const OpChoice& choice) const;
  // All candidates, and the pending reduction of those that pass it on.
  Pending add_candidates(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings);
  // Leaves tensors out that are on another mesh; null: none is.
  void add_projected(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule,
                     ComputeShardings& shardings);
  std::vector<MeshPtr> meshes_of(std::span<const PlacementId> declared, std::span<const PlacementId> current) const;
  Rank rank_of(const OpView& op, const ShardingRule& rule, const Candidate& candidate, const Pending& pending);
  void add_operands(const OpView& op, const Candidate& candidate, const Pending& pending, Rank& rank);
  void add_results(const OpView& op, const OpChoice& choice, Rank& rank);
  void add_method(const OpView& op, const ShardingRule& rule, const OpChoice& choice, Rank& rank);
  TypeId type_of(ValueId value) const { return module_.value(value).type; }

  Module& module_;
  const Function* function_ = nullptr;
  Versions& versions_;
  ProgramPlacements& placements_;
  ReshardPlanner& planner_;
  ChoiceInProgress& choice_;
  const DeferredReductions& deferred_;
  Objective objective_;
  DryRuns dry_runs_;
  FactorProjection projection_;
  std::vector<const Placement*> tensors_;
};

}  // namespace shardwise
