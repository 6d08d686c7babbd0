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

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> control_ops();

// An op that runs regions or a function. It propagates along its edges, and has no kernel.
constexpr OpDef region_op(std::string_view name, InferFn infer, FlowFn flow, VerifyFn verify, std::string_view format,
                          std::string_view doc) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = no_rule,
               .prepare = propagation_only,
               .vjp = propagation_only,
               .batch = propagation_only,
               .flow = flow,
               .verify = verify,
               .format = format,
               .doc = doc};
}

bool is_call(const Module& module, OpId id);
inline constexpr std::string_view kCallName = "func.call";
const std::string& callee_of(const Module& module, OpId call);  // the name of the function
// A call with the result types of `results`.
OpId create_call(Builder& builder, const std::string& callee, std::span<const ValueId> operands,
                 std::span<const ValueId> results);

}  // namespace shardwise
