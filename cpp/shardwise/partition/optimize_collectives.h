// SPDX-License-Identifier: Apache-2.0
//
// Merges equal collectives and equal local ops of the local program. Removes unused ones, such as those of an annotated
// value whose users start from the original value.
//
//   %1 = "shardwise.all_gather"(%0) <{gather = [{"x"}], mesh = @mesh, cause = "operand 0 of tanh"}>
//   %2 = "shardwise.all_gather"(%0) <{gather = [{"x"}], mesh = @mesh, cause = "operand 1 of dot_general"}>
//   ->  one all_gather, with the first cause
//
// An exchange of an exchange becomes one (exchanges/merge_exchanges.h), and so do several of one value
// (exchanges/join_ranges.h). Collectives that differ only in their cause are equal; ops with side effects stay. Constants
// of branches and loops move out of them (lift_constants.h), so that equal ones are one.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module optimize_collectives(Module module, PassContext& context);
inline constexpr Pass kOptimizeCollectives{
    .name = "optimize_collectives",
    .doc = "merge equal ops of the local program, merge and join exchanges, and remove unused ops",
    .run = optimize_collectives,
    .needs_runnable = true,
    .takes = {.first = Stage::kLocal}};

}  // namespace shardwise
