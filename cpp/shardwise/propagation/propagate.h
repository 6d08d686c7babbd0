// SPDX-License-Identifier: Apache-2.0
//
// Infers a sharding for every value from the user's annotations:
//
//   func @main(%x: tensor<8x4xf32> [{"data"}, {}], %w: tensor<4x16xf32>) -> tensor<8x16xf32> {
//     %0 = dot_general %x, %w          %0: [{"data", ?}, {?}]     along the factor of dim 0 of %x
//     %1 = tanh %0                     %1: [{"data", ?}, {?}]
//
// Each op's rule defines how its tensors share factors; propagate_factors.h decides what one op does. The order of
// visits is Shardy's, because it decides conflicts. One sweep runs from top to bottom; when a sharding grows, the op
// that defines the value is visited again, after the value's users. Before and after each sweep, each result of main
// and the value returned there get the same sharding. That is one round. Ops join round by round
// (propagation_rounds.h), and all rounds repeat for each user priority (user_priorities.h).
//
// This terminates, because dims only gain axes. No step depends on more than the axes, so the number of devices does
// not matter.
#pragma once

#include "shardwise/ir/pass.h"
#include "shardwise/propagation/propagation_rounds.h"

namespace shardwise {

// Splits constants, applies constraints, propagates shardings, then closes them (CompileOptions::close_shardings).
void propagate(Program& program);
inline constexpr Pass kPropagate{.name = "propagate",
                                 .doc = "give every value a sharding",
                                 .run = propagate,
                                 .takes = {.last = Form::kPlanned},
                                 .reads = {.strategy = true, .conservative = true, .strict_divisible = true}};

// Propagation alone: open dims stay open, and values that no sharding reached have none.
void propagate_shardings(Module& module, Strategy strategy, Priorities priorities, Provenance& provenance,
                         Counters& counters, bool conservative = false, Setting setting = Setting::kAlone);

}  // namespace shardwise
