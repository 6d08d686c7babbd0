// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/same_op.h"

#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/partitioning/padding.h"

namespace shardwise {

OpId create_again(Builder& builder, const OpView& op, std::span<const ValueId> operands, AttrsId attrs,
                  std::span<const TypeId> types) {
  GraphCopy copy(op.module(), builder.module());
  std::vector<RegionId> regions;
  for (const RegionId region : op.regions()) regions.push_back(copy.region(region));
  return builder.create_op(op.def(), operands, attrs, types, regions);
}

std::vector<ValueId> batched_operands(BatchContext& context) {
  std::vector<ValueId> operands;
  for (size_t i = 0; i < context.op().operand_count(); ++i) operands.push_back(context.batched(i));
  return operands;
}

std::vector<TypeId> local_result_types(const PartitionContext& context) {
  std::vector<TypeId> types;
  for (size_t i = 0; i < context.op().result_count(); ++i) types.push_back(context.local_result_type(i));
  return types;
}

void set_results(PartitionContext& context, OpId made) {
  for (size_t i = 0; i < context.op().result_count(); ++i) {
    const ValueId result = context.builder().module().result(made, static_cast<uint32_t>(i));
    context.set_result(i, result, result_padding(context.result_layout(i)));
  }
}

}  // namespace shardwise
