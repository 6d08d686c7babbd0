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

#include "shardwise/choice/greedy/walked_program.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// How ops are to be computed that are chosen one by one. An op that cannot be, with its operands where they are by then, is
// chosen by the walk.
using GivenChoices = std::unordered_map<OpId, OpChoice>;

// Makes PassContext::choice. Pins come before what is given.
void greedy_choice(const WalkedProgram& program, CandidateScope scope, PassContext& context,
                   const GivenChoices& given = {});

}  // namespace shardwise
