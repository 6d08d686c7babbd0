// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/row_of_op.h"

#include <memory>
#include <utility>
#include <vector>

#include "shardwise/emission/local_partition_context.h"
#include "shardwise/ops/build/same_op.h"

namespace shardwise {
namespace {

bool is_collective(const OpView& op) { return op.def().traits.collective != CollectiveKind::kNone; }

// These change the sizes of the dims along which they move something.
bool keeps_other_dims(CollectiveKind kind) {
  return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kAllReduce ||
         kind == CollectiveKind::kReduceScatter;
}

// As if a device of a mesh had one row each.
LocalValue one_row(Builder& builder, const MeshPtr& rows, ValueId whole, size_t dim) {
  Context& context = builder.context();
  const TypeId type = builder.module().value(whole).type;
  Placement placement = replicated_placement(rows, context.type(type).shape);
  placement.dims[dim] = {.axes = {AxisRef{.axis = 0, .size = rows->axes().front().size}}, .block = 1};
  return local_value(context, {type, context.intern(placement)});
}

}  // namespace

std::optional<size_t> operand_dim_of_rows(const OpView& op, size_t dim) {
  if (op.operand_count() != 1 || op.result_count() != 1 || op.def().traits.side_effect) return std::nullopt;
  const Dims &operand = op.operand_type(0).shape, &result = op.result_type().shape;
  if (is_collective(op)) {
    const bool is_kept = keeps_other_dims(op.def().traits.collective) && operand[dim] == result[dim];
    return is_kept ? std::optional(dim) : std::nullopt;
  }
  const ShardingRule& rule = sharding_rule(op);
  if (rule.empty()) return std::nullopt;
  const std::span<const FactorId> factors = rule.dim(rule.result_tensor(0), dim);
  if (factors.size() != 1) return std::nullopt;
  const Factor& factor = rule.factors()[factors[0]];
  if (factor.kind != FactorKind::kPassThrough || factor.blocked || factor.size != result[dim]) return std::nullopt;
  for (size_t d = 0; d < operand.size(); ++d) {
    const std::span<const FactorId> own = rule.dim(0, d);
    if (own.size() == 1 && own[0] == factors[0]) {
      return rule.range(0, d) == nullptr && operand[d] == result[dim] ? std::optional(d) : std::nullopt;
    }
  }
  return std::nullopt;
}

ValueId emit_row(Builder& builder, const OpView& op, size_t dim, ValueId row) {
  Context& context = builder.context();
  if (is_collective(op)) {
    TensorType type = op.result_type();
    type.shape[dim] = 1;
    const TypeId result = context.tensor(type.dtype, type.shape);
    const ValueId operands[] = {row};
    return builder.module().result(create_again(builder, op, operands, attrs_of(op), {&result, 1}));
  }
  const auto rows = std::make_shared<const Mesh>("rows", std::vector<MeshAxis>{{"row", op.result_type().shape[dim]}});
  LocalValue operand = one_row(builder, rows, op.operand(0), *operand_dim_of_rows(op, dim));
  operand.value = row;
  LocalEmitter emitter(builder, rows);
  LocalPartitionContext partition(emitter, op, sharding_rule(op), nullptr, {operand},
                                  {one_row(builder, rows, op.result(), dim)});
  return partition.run()[0].value;
}

}  // namespace shardwise
