// SPDX-License-Identifier: Apache-2.0
//
// Creates an op again on other operands: on those of a shard, or of several examples.
//
//   set_results(context, create_again(builder, context.op(), batched_operands(context), attrs));
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// With copies of the op's regions.
OpId create_again(Builder& builder, const OpView& op, std::span<const ValueId> operands, AttrsId attrs,
                  std::span<const TypeId> types = {});
inline AttrsId attrs_of(const OpView& op) { return op.module().op(op.id()).attrs; }

std::vector<ValueId> batched_operands(BatchContext& context);
// The op or call with a new leading dim on all operands and results.
void batch_by_leading_dim(BatchContext& context);
std::vector<TypeId> local_result_types(const PartitionContext& context);
// The operands from `first` on, of any context.
template <class Context>
std::vector<ValueId> operands_of(Context& context, size_t first = 0) {
  std::vector<ValueId> operands;
  for (size_t i = first; i < context.op().operand_count(); ++i) operands.push_back(context.operand(i));
  return operands;
}

// Sets each result of the context's op to that of `made`. The padding of a local op's results is that after an op
// without a rule.
template <class Context>
void set_results(Context& context, OpId made) {
  for (size_t i = 0; i < context.op().result_count(); ++i) {
    context.set_result(i, context.builder().module().result(made, static_cast<uint32_t>(i)));
  }
}
void set_results(PartitionContext& context, OpId made);

}  // namespace shardwise
