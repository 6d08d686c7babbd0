// SPDX-License-Identifier: Apache-2.0
//
// The definition of a custom call: to the target of a stablehlo.custom_call what OpDef is to an op.
//
//   register_custom_call({.name = "scale",
//                         .rule = rule_like_first_result,
//                         .prepare = prepare_scale,
//                         .no_vjp_reason = "pass vjp= to sw.register_custom_call",
//                         .batch = batch_by_leading_dim});  // build/same_op.h
//   %1 = stablehlo.custom_call @scale(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
//
// The table has the calls of ops/linalg from the start; users add theirs. A target that other compilers know propagates
// as they do; propagation follows the definition's rule for the others.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

struct CustomCallDef {
  std::string name;
  std::function<void(const OpView&)> check = {};         // when a program is compiled; empty: any types and attributes
  std::function<ShardingRule(const OpView&)> rule = {};  // empty: replicated
  std::function<std::optional<Kernel>(const OpView&, const KernelTypes&)> prepare = {};
  // In place of a kernel: other ops, which replace the call together with the calls of the module's functions.
  std::function<void(DecomposeContext&)> decompose = {};
  std::function<OpCost(const OpView&, const LocalTypes&)> cost = {};  // empty: by the rule
  std::function<void(VjpContext&)> vjp = {};
  std::string no_vjp_reason = {};  // what to do, where vjp is empty
  std::function<void(BatchContext&)> batch = {};
  bool propagates = false;      // propagation follows the rule
  bool is_replaceable = false;  // by another definition of this name
};

using CustomCallPtr = std::shared_ptr<const CustomCallDef>;

CustomCallPtr find_custom_call(std::string_view name);  // null for an unknown target
// Throws ShapeError for the name of a definition that is not replaceable.
void register_custom_call(CustomCallDef def);
// Adds a gradient to a definition that has none.
void set_custom_call_vjp(std::string_view name, std::function<void(VjpContext&)> vjp);

const std::string& custom_call_target(const OpView& op);

}  // namespace shardwise
