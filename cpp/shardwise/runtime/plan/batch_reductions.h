// SPDX-License-Identifier: Apache-2.0
//
// The order of steps for a run in several processes: small all_reduces wait until nothing else can run, so that those
// which are ready together travel as one message.
//
//   %1 = all_reduce %a        %2 = multiply %b, %c
//   %2 = multiply %b, %c      %1 = all_reduce %a     together: 2
//   %3 = all_reduce %2        %3 = all_reduce %2
//
// The values do not change. Steps with side effects keep their places.
#pragma once

#include <span>

#include "shardwise/ir/module.h"
#include "shardwise/runtime/plan/step.h"

namespace shardwise {

// Whether a step, or a step of a block, does more than make its outputs. `functions` are those that it calls, by
// number.
bool has_effect(const Module& module, std::span<const PlannedFunction> functions, const Step& step);
bool has_effect(const Module& module, std::span<const PlannedFunction> functions, const Block& block);

// For a plan whose slots are still indices of values.
void batch_reductions(const Module& module, Plan& plan);

}  // namespace shardwise
