// SPDX-License-Identifier: Apache-2.0
//
// Checks a text that claims to have been assigned. The driver runs it where such a text enters, before `localize`, which
// takes the placements as they are:
//
//   %0 = stablehlo.add %x, %y : tensor<8xf32>        %x: [{}]  %y: [{"x"}]  %0: [{}]
//   // ShardingError: stablehlo.add: its operands and results must be sharded alike along each factor, got …
//
// An op must be placed as its rule or its method computes it, a carry, and the result of a branch, as the result of
// their op, operands and results of a call as those of the function, and results of functions as these declare.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// For a program at stage resharded. Functions that nothing calls are not checked.
void verify_assigned(const Module& module);

}  // namespace shardwise
