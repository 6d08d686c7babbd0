// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/masking.h"

#include "shardwise/ops/create.h"
#include "shardwise/ops/layout.h"

namespace shardwise {
namespace {

ValueId mask_dim(PartitionContext& context, ValueId local, const DimLayout& layout, int64_t dim, Scalar fill) {
  Builder& builder = context.builder();
  const TensorType type = builder.module().type(local);
  const ValueId offset = context.shard_offset(layout);
  const DType index_dtype = builder.module().type(offset).dtype;
  const ValueId row = build_iota(builder, index_dtype, type.shape, dim);
  const ValueId index = builder.create("stablehlo.add", {row, build_broadcast(builder, offset, type.shape, {})});
  const ValueId size = build_splat(builder, type.shape, scalar_of(index_dtype, layout.size));
  const ValueId inside = builder.create(
      "stablehlo.compare", {index, size}, Attrs{{"comparison_direction", EnumAttr{"stablehlo", "comparison_direction", "LT"}}});
  return builder.create("stablehlo.select", {inside, local, build_splat(builder, type.shape, fill)});
}

}  // namespace

// The context masks an operand along one factor; what is uneven along several is masked once more for each further one.
ValueId masked_dims(PartitionContext& context, size_t operand, DimSpan dims, Scalar fill) {
  const LocalLayout& layout = context.operand_layout(operand);
  const bool filled = layout.padding.kind == Padding::Kind::kFill && layout.padding.fill == fill;
  ValueId local;
  for (int64_t dim : dims) {
    const DimLayout& dim_layout = layout.dims[static_cast<size_t>(dim)];
    if (!dim_layout.uneven() || filled) continue;
    local = local ? mask_dim(context, local, dim_layout, dim, fill)
                  : context.masked_operand(operand, context.rule().dim(operand, static_cast<size_t>(dim))[0], fill);
  }
  return local ? local : context.operand(operand);
}

}  // namespace shardwise
