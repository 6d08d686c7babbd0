// SPDX-License-Identifier: Apache-2.0
//
// Ops that run regions or other functions, and the optimization barrier.
//
//   %1:2 = stablehlo.while(%arg2 = %0, %arg3 = %x) : tensor<i32>, tensor<8xf32>
//     cond { … stablehlo.return %p : tensor<i1> }
//     do { … stablehlo.return %i, %y : tensor<i32>, tensor<8xf32> }
//
// Shardings propagate along edges (DataFlowEdge), not by a rule: %x and %y are the sources of %1#1, and %arg3 in both
// regions has the sharding of %1#1.
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/called.h"

namespace shardwise {

std::span<const OpDef> control_ops();

bool is_composite(const OpDef& def);  // stablehlo.composite, which is a call of its decomposition
ValueId create_optimization_barrier(Builder& builder, ValueId value);
bool is_call(const Module& module, OpId id);
inline constexpr std::string_view kCallName = "func.call";
// A call with the result types of `results`.
OpId create_call(Builder& builder, const std::string& callee, std::span<const ValueId> operands,
                 std::span<const ValueId> results);

}  // namespace shardwise
