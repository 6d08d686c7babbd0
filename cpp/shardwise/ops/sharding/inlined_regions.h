// SPDX-License-Identifier: Apache-2.0
//
// Ops whose region runs once, in their place (Regions::kInline). They differ in their gradient (OpDef::region_gradient):
//
//   %1 = sdy.named_computation<"f">(%0) (%arg2: tensor<8xf32>) { … sdy.return %2 : tensor<8xf32> } : …
//   %1 = "shardwise.checkpoint"(%0) <{policy = "nothing"}> ({ ^bb0(%arg2: tensor<8xf32>): … }) : …
//   %1 = "shardwise.custom_derivative"(%0) <{derivative = 3 : i64, name = "f"}> ({ ^bb0(%arg2: tensor<8xf32>): … }) : …
//
// The policy of a checkpoint is about the values that its gradient keeps:
//
//   policy = "nothing" | "dots" | "dots without batch dims"
//            "names" | "other names" | "all but names"        with names = ["h", …]
//            "any"                                            with policies = ["dots", "names", "=h", …]
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> inlined_region_ops();

inline constexpr std::string_view kPolicyAttr = "policy", kSavedNamesAttr = "names", kPoliciesAttr = "policies";
inline constexpr std::string_view kDerivativeAttr = "derivative";

// The region of `op` has an argument for each operand; the results are those that the text or the caller declares.
void infer_region(const InferContext& op, std::vector<TypeId>& results);
// From each operand to its argument, and from each value that the region returns to its result.
void flow_region(const OpView& op, std::vector<DataFlowEdge>& edges);

bool is_inlined_region(const Module& module, OpId id);
bool is_named_computation(const Module& module, OpId id);
// In both, `body` has an argument for each operand. Its results are those of the op.
OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body);
OpId create_custom_derivative(Builder& builder, const std::string& name, int64_t derivative,
                              std::span<const ValueId> operands, RegionId body);
// The same ops, differentiated by themselves.
void make_named_computation(Module& module, OpId custom_derivative);

}  // namespace shardwise
