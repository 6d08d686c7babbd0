// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/local_emitter.h"

#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

Builder& LocalEmitter::in_body() {
  // The first op that needs the value is its location, although later ops use it, too.
  in_body_.set_loc(builder_.loc(), builder_.origin());
  return in_body_;
}

ValueId LocalEmitter::axis_index(const AxisList& axes) {
  ValueId& index = axis_indices_[axes];
  if (!index) {
    check_internal(mesh_ != nullptr, "axes without a mesh");
    index = create_axis_index(in_body(), *mesh_, axes);
  }
  return index;
}

ValueId LocalEmitter::shard_offset(const DimLayout& dim) {
  ValueId& offset = offsets_[{dim.axes, dim.block}];
  if (offset) return offset;
  // Padding counts, too: an empty shard has an offset past the size of the dim.
  const bool fits = dim.block * dim.shards <= std::numeric_limits<int32_t>::max();
  const DType dtype = fits ? DType::kI32 : DType::kI64;
  Builder& builder = in_body();
  const ValueId index = build_convert(builder, axis_index(dim.axes), dtype);
  offset = builder.create("stablehlo.multiply", {index, build_scalar(builder, Scalar::of_int(dtype, dim.block))});
  return offset;
}

// Compares rows in one dim. Broadcasting the mask to the other dims is a view.
ValueId LocalEmitter::rows_inside(const DimLayout& layout) {
  ValueId& inside = insides_[{layout.axes, layout.block, layout.size}];
  if (inside) return inside;
  const ValueId offset = shard_offset(layout);
  Builder& builder = in_body();
  const DType dtype = builder.module().type(offset).dtype;
  const ValueId size = build_scalar(builder, Scalar::of_int(dtype, layout.size));
  // Negative on devices that have only padding: then no row is inside.
  const ValueId rows = builder.create("stablehlo.subtract", {size, offset});
  const Dims shape{layout.block};
  const ValueId row = build_iota(builder, dtype, shape, 0);
  inside = build_compare(builder, "LT", row, build_broadcast(builder, rows, shape, {}));
  return inside;
}

ValueId LocalEmitter::masked(ValueId value, int64_t dim, const DimLayout& layout, Scalar fill) {
  const Dims shape = builder_.module().type(value).shape;
  const ValueId inside = build_broadcast(builder_, rows_inside(layout), shape, Dims{dim});
  return builder_.create("stablehlo.select", {inside, value, build_splat(builder_, shape, fill)});
}

ValueId LocalEmitter::as_parts(ValueId value, const AxisList& axes, Reducer reducer, bool owned) {
  const Module& module = builder_.module();
  // max of equal values is the value, and a sum of zeros is zero: every device may keep them.
  const std::optional<Scalar> splat = owned ? std::nullopt : splat_value(module, value);
  if (is_idempotent(reducer) || (splat && is_neutral(reducer, *splat))) return value;
  const TensorType type = module.type(value);
  const ValueId zero = build_scalar(builder_, Scalar::of_int(DType::kI32, 0));
  const ValueId keeps = build_compare(builder_, "EQ", axis_index(axes), zero);
  const ValueId neutral = build_splat(builder_, type.shape, exact_neutral(reducer, type.dtype));
  return builder_.create("stablehlo.select", {keeps, value, neutral});
}

}  // namespace shardwise
