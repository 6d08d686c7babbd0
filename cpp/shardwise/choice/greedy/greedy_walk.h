// SPDX-License-Identifier: Apache-2.0
//
// Makes a Choice in one walk over the program, op by op, each by the bytes that it moves:
//
//   greedy_choice(module, context);
//
// An op finds its operands where the ops before it have put them (versions.h). What it cannot see, the ops behind it, stands
// in greedy/heuristics.h. Accumulators of loops are chosen as a whole (accumulator_chooser.h).
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// Leaves the module as it is but for its use lists.
void greedy_choice(Module& module, PassContext& context);

}  // namespace shardwise
