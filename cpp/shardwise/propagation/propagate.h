// SPDX-License-Identifier: Apache-2.0
//
// Gives every value a sharding, starting from the few that a user wrote:
//
//   func @main(%x: tensor<8x4xf32> [{"data"}, {}], %w: tensor<4x16xf32>) -> tensor<8x16xf32> {
//     %0 = dot_general %x, %w          %0: [{"data", ?}, {?}]     along the factor of dim 0 of %x
//     %1 = tanh %0                     %1: [{"data", ?}, {?}]
//
// Each op's rule says how its tensors share factors; propagate_factors.h decides what one op does. The order of visits
// is Shardy's, since it decides conflicts: one sweep from top to bottom, in which a value that has grown brings back
// the op that defines it, after its users. The result of main and the value returned there are made alike before and
// after. That is one round; ops join round by round (propagation_rounds.h), and all rounds run again for each priority
// that a user gave (user_priorities.h).
//
// An axis only ever joins a dim, so this ends; no step looks at more than axes, so the number of devices plays no part.
#pragma once

#include <span>

#include "shardwise/ir/pass.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/shardy/setting.h"

namespace shardwise {

// The passes that `propagate` consists of. Calls are regions between the steps calls_to_regions and regions_to_calls.
std::span<const Pass> propagation_steps();

// Constants are split, constraints applied, shardings propagated, then closed. A program of a later stage has to be
// assigned again.
Module propagate(Module module, PassContext& context);
inline constexpr Pass kPropagate{.name = "propagate",
                                 .doc = "give every value a sharding",
                                 .run = propagate,
                                 .steps = propagation_steps,
                                 .takes = {.last = Stage::kResharded},
                                 .makes = Stage::kPropagated,
                                 .reads = {.strategy = true, .conservative = true, .strict_divisible = true}};

// Propagation alone: open dims stay open, values that nothing reached have no sharding.
void propagate_shardings(Module& module, PassContext& context, Strategy strategy, Priorities priorities,
                         Setting setting = Setting::kPipeline);

}  // namespace shardwise
