// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/same_op.h"

#include <array>
#include <string_view>

#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

// Attributes that state ranks or sizes of the call before it gets a leading dim.
constexpr std::array<std::string_view, 5> kOfOneExample = {text_words::kShardingRule, "operand_layouts",
                                                           "result_layouts", "output_operand_aliases",
                                                           "mhlo.frontend_attributes"};

}  // namespace

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

void batch_by_leading_dim(BatchContext& context) {
  const OpView op = context.op();
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const TensorType& type = op.result_type(i);
    types.push_back(context.builder().context().tensor(type.dtype, with_leading(context.size(), type.shape)));
  }
  // Numbers and names go with the batched call; what depends on the shapes of one example does not.
  Attrs attrs = op.attrs();
  for (const std::string_view name : kOfOneExample) attrs.erase(name);
  set_results(context, context.builder().create_op(op.name(), batched_operands(context), attrs, types));
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
