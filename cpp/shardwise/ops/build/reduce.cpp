// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/reduce.h"

#include <array>

#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

ValueId counted_once(PartitionContext& context, size_t operand, const AxisList& unreduced, Reducer reducer) {
  const ValueId all = context.operand(operand);
  // It is counted in addends already along the axes over which it comes unreduced.
  const AxisList axes = difference(unreduced, context.operand_layout(operand).unreduced());
  const std::optional<Scalar> value = splat_value(context.op().module(), context.op().operand(operand));
  // Each device along an unreduced axis adds the operand to its part. That does not
  // matter for max, nor for a neutral value.
  if (axes.empty() || is_idempotent(reducer) || (value && is_neutral(reducer, *value))) return all;
  Builder& builder = context.builder();
  const TensorType type = builder.module().type(all);
  const ValueId index = context.axis_index(axes);
  // All but the first device of each group get the neutral element.
  const ValueId first = build_compare(builder, "EQ", index, build_zeros(builder, builder.module().type(index)));
  // -0.0 for sums: x + 0.0 would turn a sum of -0.0 into 0.0.
  const ValueId neutral = build_splat(builder, type.shape, exact_neutral(reducer, type.dtype));
  return builder.create("stablehlo.select", {first, all, neutral});
}

RegionId build_reducer_region(Builder& builder, Reducer reducer, DType dtype) {
  Module& module = builder.module();
  const RegionId id = module.add_region();
  const TypeId scalar = builder.context().tensor(dtype, {});
  const ValueId lhs = module.add_argument(id, scalar);
  const ValueId rhs = module.add_argument(id, scalar);
  // The region's op is at the line of the op that owns it.
  Builder inner(module, id, builder.loc());
  const ValueId combined = inner.create(reducer_op_name(reducer), {lhs, rhs});
  module.region(id).results = {combined};
  return id;
}

ValueId create_reduction(Builder& builder, std::string_view name, ValueId operand, ValueId init, Reducer reducer,
                         const Attrs& attrs) {
  const DType dtype = builder.module().type(operand).dtype;
  if (!init) init = build_scalar(builder, neutral_element(reducer, dtype));
  const RegionId region = build_reducer_region(builder, reducer, dtype);
  return builder.create(name, std::array{operand, init}, attrs, {}, {&region, 1});
}

ValueId build_reduce(Builder& builder, ValueId operand, ValueId init, Reducer reducer, DimSpan dims) {
  // No dims and nothing to add: the operand itself.
  if (dims.empty() && !init) return operand;
  return create_reduction(builder, "stablehlo.reduce", operand, init, reducer, {{"dimensions", to_dims(dims)}});
}

ValueId build_sum_of_all(Builder& builder, ValueId operand) {
  return build_reduce(builder, operand, {}, Reducer::kSum, identity_dims(builder.module().type(operand).ndim()));
}

}  // namespace shardwise
