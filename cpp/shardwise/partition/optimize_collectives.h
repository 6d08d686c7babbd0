// SPDX-License-Identifier: Apache-2.0
//
// Merges equal collectives, and equal local ops, of the local program, and removes those that nobody needs: of a value
// that was annotated, but that its users are better served with as it was before.
//
//   %1 = "shardwise.all_gather"(%0) <{gather = [{"x"}], mesh = @mesh, cause = "operand 0 of tanh"}>
//   %2 = "shardwise.all_gather"(%0) <{gather = [{"x"}], mesh = @mesh, cause = "operand 1 of dot_general"}>
//   ->  one all_gather, with the first cause
//
// The reason why a collective is there does not tell two collectives apart; ops with side effects stay.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

void optimize_collectives(Program& program);
inline constexpr Pass kOptimizeCollectives{
    .name = "optimize_collectives",
    .doc = "merge equal collectives of the local program, and remove unused ones",
    .run = optimize_collectives,
    .needs_runnable = true,
    .takes = {.first = Form::kLocal}};

}  // namespace shardwise
