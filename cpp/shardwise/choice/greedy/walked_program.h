// SPDX-License-Identifier: Apache-2.0
//
// All walks over one program share the facts about it, the prices, and the candidates of its ops. The search for a choice owns
// them (choose.cpp).
//
//   greedy_choice(walked, CandidateScope::kAll, context);       // lists of candidates are made
//   greedy_choice(walked, CandidateScope::kAll, context);       // and found
#pragma once

#include "shardwise/choice/choice_key.h"
#include "shardwise/choice/greedy/candidate_lists.h"
#include "shardwise/choice/requested_sums.h"

namespace shardwise {

// A walk changes only the use lists of the module.
struct WalkedProgram {
  Module& module;
  const CallGraph& calls;
  const OpKeys& keys;
  const ProgramLinearity& linearity;
  ProgramPlacements& placements;
  const RequestedSums& requested;
  Costs& costs;
  CandidateLists& lists;
};

}  // namespace shardwise
