// SPDX-License-Identifier: Apache-2.0
//
// Fields of ops whose result is their operand: annotations, edges and barriers of propagation, and collectives on
// global values, which change where elements are and not what they are.
//
//   identity_op("sdy.func_data_flow_edge", infer_identity, vjp_identity, …)
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {

inline void infer_identity(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  results.push_back(op.operand_type(0));
}

// A device has nothing to do: the op is not in the local program.
inline void partition_identity(PartitionContext& context) {
  context.set_result(0, context.operand(0), context.operand_padding(0));
}

inline std::optional<Kernel> prepare_identity(const OpView&, const KernelTypes&) {
  return [](KernelContext& context) { context.set_result(0, context.operand(0)); };
}

inline void vjp_identity(VjpContext& context) {
  if (context.op().result_count() == 1 && context.needs(0)) context.set(0, context.cotangent());
}

constexpr OpDef identity_op(std::string_view name, InferFn infer, VjpFn vjp, BatchFn batch, std::string_view format,
                            std::string_view doc, Traits traits) {
  traits.shares_memory = true;
  return OpDef{.name = name,
               .infer = infer,
               .rule = rule_like_first_result,
               .partition = partition_identity,
               .prepare = prepare_identity,
               .cost = costs_nothing,
               .vjp = vjp,
               .batch = batch,
               .format = format,
               .doc = doc,
               .traits = traits};
}

}  // namespace shardwise
