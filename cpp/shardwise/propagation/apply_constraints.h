// SPDX-License-Identifier: Apache-2.0
//
// What a constraint says about its operand, before propagation starts:
//
//   %1 = sine %0                                             %1 takes [{"x"}, {}] at once, as nothing else speaks for
//   %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]>     it; so a constraint nobody uses still counts
//
// This happens when the constraint closes every dim, the operand has no sharding, and no other constraint on it
// differs. And of a chain of constraints on a value, later users of the value get the last one.
#pragma once

#include "shardwise/ir/module.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

void apply_constraints(Module& module, Provenance& provenance);

}  // namespace shardwise
