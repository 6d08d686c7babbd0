// SPDX-License-Identifier: Apache-2.0
//
// The last part of planning: from values to slots.
//
//   %1 = tanh %0                     slot 0 = %0, slot 1 = %1; step 0 reads slot 0, after which it is dead
//   %2 = while(%i = %1) … %4         slot 2 = %2 = %i; enter: slot 1 → slot 2 (last); body: slot 3 = %4 → slot 2 (last)
//
// A slot that is read for the last time in a block is dead there if the block made it. The body of a loop runs many
// times, so its captures stay; a branch runs once, so values that are dead after it may die in it.
#pragma once

#include "shardwise/runtime/plan/step.h"
#include "shardwise/runtime/plan/variation.h"

namespace shardwise {

// Replaces values by slots in all steps, which hold indices of values, and finds dead and moved values. Fills
// Plan::slots, slot_varying, slot_axes and arguments.
void number_slots(const Module& module, const Variation& variation, Plan& plan);

}  // namespace shardwise
