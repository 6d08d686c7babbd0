// SPDX-License-Identifier: Apache-2.0
//
// Chooses how one op is computed by what each candidate costs (costs.h), with the moves of its operands and of its results
// to where propagation has them (choose.h has the rules):
//
//   OpChooser chooser(program, versions, choice, deferred, CandidateScope::kAll);
//   const OpChoice best = chooser.choose(dot, rule);      // the cheapest of CandidateLists, or the one that is pinned
//   best.operands[0]      // the placement in which it takes operand 0
//
// The greedy walk asks it for one op after another, each time with its operands where they are by then.
#pragma once

#include "shardwise/choice/greedy/heuristics.h"
#include "shardwise/choice/greedy/pinned_ops.h"
#include "shardwise/choice/greedy/walked_program.h"

namespace shardwise {

class OpChooser {
 public:
  OpChooser(const WalkedProgram& program, Versions& versions, ChoiceInProgress& choice,
            const DeferredReductions& deferred, CandidateScope scope)
      : program_(program),
        module_(program.module),
        versions_(versions),
        placements_(program.placements),
        choice_(choice),
        deferred_(deferred),
        scope_(scope),
        pinned_(module_, placements_, choice) {}

  void enter_function(const Function& function) { function_ = &function; }
  // For an op of that function.
  OpChoice choose(const OpView& op, const ShardingRule& rule);

 private:
  struct Rank;
  const TensorPlaces& places_of(const OpView& op);
  OpChoice cheapest(const OpView& op, const CandidateList& list, const Pending& pending);
  std::vector<OpChoice> ranked(const OpView& op, const CandidateList& list, const Pending& pending);
  bool leaves_requested(const OpView& op, const OpChoice& choice) const;
  Rank rank_of(const OpView& op, const CandidateList& list, size_t candidate, const Pending& pending);
  void add_operands(const OpView& op, const Candidate& candidate, const Pending& pending, Rank& rank);
  void add_results(const OpView& op, const OpChoice& choice, Rank& rank);

  const WalkedProgram& program_;
  Module& module_;  // its use lists are built, so it is not const
  const Function* function_ = nullptr;
  Versions& versions_;
  ProgramPlacements& placements_;
  ChoiceInProgress& choice_;
  const DeferredReductions& deferred_;
  const CandidateScope scope_;
  PinnedOps pinned_;
  TensorPlaces places_;  // of the op at hand
};

}  // namespace shardwise
