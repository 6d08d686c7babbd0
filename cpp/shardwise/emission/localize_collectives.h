// SPDX-License-Identifier: Apache-2.0
//
// Turns Shardy's collectives on global values into symbolic collectives on local values:
//
//   %1 = sdy.all_slice [{"x"}] %0 out_sharding=<@mesh, [{"x"}]> : tensor<17xf32>                    x = 4
//
//   %1 = stablehlo.pad %0, …, high = [3]                       tensor<17xf32> -> tensor<20xf32>
//   %2 = "shardwise.axis_index"() <{axes = {"x"}, mesh = @mesh}>
//   %3 = stablehlo.multiply %2, 5
//   %4 = stablehlo.dynamic_slice %1, %3, sizes = [5]           tensor<5xf32>
#pragma once

#include "shardwise/emission/local_emitter.h"
#include "shardwise/emission/local_value.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// Emits the local form of a global collective. `result` comes with the part that it must hold, and gets its value and
// padding.
void localize_collective(LocalEmitter& emitter, const OpView& op, const LocalValue& operand, LocalValue& result);

}  // namespace shardwise
