// SPDX-License-Identifier: Apache-2.0
//
// Makes a Choice in one walk over the program, op by op, each by what it costs (costs.h):
//
//   greedy_choice(program, CandidateScope::kAll, context);
//
// An op finds its operands where the ops before it have put them (versions.h). What it cannot see, the ops behind it, stands
// in greedy/heuristics.h. Accumulators of loops are chosen as a whole (accumulator_chooser.h).
#pragma once

#include <unordered_map>

#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/greedy/candidate_lists.h"
#include "shardwise/choice/requested_sums.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// All walks over a program share this. A walk changes only the use lists of the module.
struct WalkedProgram {
  Module& module;
  const CallGraph& calls;
  const OpKeys& keys;
  const ProgramLinearity& linearity;
  ProgramPlacements& placements;
  const RequestedSums& requested;
  Costs& costs;
};

// How ops are to be computed that are chosen one by one. An op that cannot be, with its operands where they are by then, is
// chosen by the walk.
using GivenChoices = std::unordered_map<OpId, OpChoice>;

// Makes PassContext::choice. Pins come before what is given.
void greedy_choice(const WalkedProgram& program, CandidateScope scope, PassContext& context,
                   const GivenChoices& given = {});

}  // namespace shardwise
