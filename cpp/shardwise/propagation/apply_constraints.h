// SPDX-License-Identifier: Apache-2.0
//
// Applies constraints to their operands before propagation starts:
//
//   %1 = sine %0                                             %1 gets [{"x"}, {}] at once, because no other annotation
//   %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]>     covers it; so an unused constraint has an effect, too
//
// This happens if the constraint closes every dim, the operand has no sharding, and no other constraint on it differs.
// In a chain of constraints on a value, later users of the value use the last constraint.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

void apply_constraints(Module& module, PassContext& context);

}  // namespace shardwise
