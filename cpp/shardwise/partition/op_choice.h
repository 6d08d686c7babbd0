// SPDX-License-Identifier: Apache-2.0
//
// Chooses the compute sharding of one op by the bytes that each candidate moves, inside methods too (assign.h has the
// rules):
//
//   OpChooser chooser(module, values, placements, planner);
//   const OpChoice choice = chooser.choose(dot, rule);
//   choice.compute.factors[i]       // the axes of factor i
//   choice.pending.operands[0]      // whether operand 0 stays unreduced
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/pass.h"
#include "shardwise/choice/compute_sharding.h"
#include "shardwise/choice/dry_run.h"
#include "shardwise/partition/placed_values.h"

namespace shardwise {

struct OpChoice {
  ComputeSharding compute;
  Pending pending;  // of the operands as placed; the result is unreduced only if `compute` passes it
};

class OpChooser {
 public:
  // `values` are the operands of the op at hand. The module's use lists are built, so it is not const.
  OpChooser(Module& source, PlacedValues& values, ProgramPlacements& placements, ReshardPlanner& planner,
            PassContext& context)
      : source_(source),
        values_(values),
        placements_(placements),
        planner_(planner),
        objective_(context.options.objective),
        choices_("ops", &Choices::ops, context),
        dry_runs_(source) {}

  void enter_function(const Function& function) { function_ = &function; }
  // For an op of that function: the cheapest candidate, or the one that is pinned for the next op. It is added to the
  // choices of the compilation.
  OpChoice choose(const OpView& op, const ShardingRule& rule);

  // The number of ops that share the reduction of a value if it is completed before them; 0 if another user needs it
  // reduced anyway: a region that returns it, or an op in another region.
  double sharers(ValueId value, const OpView& user, Reducer reducer) const;
  // How often a reduction of the value runs for each run of the op that makes it: 1, or less where it is deferred after
  // a loop.
  double share(ValueId value) const;
  void set_share(ValueId value, double share) { shares_[value] = share; }

 private:
  struct Price;
  OpChoice cheapest(const OpView& op, const ShardingRule& rule);
  // The candidate that reads like `pinned`. Throws ShardingError if there is none.
  OpChoice choose_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned);
  std::optional<PlacementId> placement_of(std::string text, TypeId type) const;
  bool add_pinned(const OpView& op, const ShardingRule& rule, const ChosenOp& pinned, const Pending& pending,
                  ComputeShardings& shardings);
  ChosenOp described(const OpView& op, const ShardingRule& rule, const OpChoice& choice) const;
  // All candidates, and the pending reduction of those that pass it on.
  Pending add_candidates(const OpView& op, const ShardingRule& rule, ComputeShardings& shardings);
  // Leaves tensors out that are on another mesh; null: none is.
  void add_projected(std::span<const PlacementId> tensors, const MeshPtr& mesh, const ShardingRule& rule,
                     ComputeShardings& shardings);
  std::vector<MeshPtr> meshes_of(std::span<const PlacementId> declared, std::span<const PlacementId> current) const;
  PlacementId wanted(const OpView& op, size_t i);
  Pending pending_at_home(const OpView& op, const ShardingRule& rule);
  bool is_summed_on(const OpView& op, Reducer reducer) const;
  bool mixes_owned(const OpView& op, const Pending& pending) const;
  Price price(const OpView& op, const ShardingRule& rule, const ComputeSharding& compute, const Pending& pending);
  TypeId type_of(ValueId value) const { return source_.value(value).type; }

  Module& source_;
  const Function* function_ = nullptr;
  PlacedValues& values_;
  ProgramPlacements& placements_;
  ReshardPlanner& planner_;
  Objective objective_;
  ChoicesInProgress<ChosenOp> choices_;
  DryRuns dry_runs_;
  FactorProjection projection_;
  std::vector<const Placement*> tensors_;
  std::unordered_map<ValueId, double> shares_;  // below 1
};

}  // namespace shardwise
