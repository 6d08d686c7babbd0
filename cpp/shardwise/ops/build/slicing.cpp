// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/slicing.h"

#include <algorithm>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

std::vector<ValueId> with_starts(std::initializer_list<ValueId> tensors, const std::vector<ValueId>& starts) {
  std::vector<ValueId> operands(tensors);
  operands.insert(operands.end(), starts.begin(), starts.end());
  return operands;
}

}  // namespace

ValueId create_slice(Builder& builder, ValueId operand, DimSpan start, DimSpan limit, DimSpan strides) {
  const Dims steps = strides.empty() ? Dims(start.size(), 1) : to_dims(strides);
  return builder.create(
      "stablehlo.slice", {operand},
      Attrs{{"start_indices", to_dims(start)}, {"limit_indices", to_dims(limit)}, {"strides", steps}});
}

ValueId create_pad(Builder& builder, ValueId operand, ValueId value, DimSpan low, DimSpan high, DimSpan interior) {
  const Dims between = interior.empty() ? Dims(low.size(), 0) : to_dims(interior);
  return builder.create(
      "stablehlo.pad", {operand, value},
      Attrs{{"edge_padding_low", to_dims(low)}, {"edge_padding_high", to_dims(high)}, {"interior_padding", between}});
}

ValueId build_slice(Builder& builder, ValueId operand, DimSpan start, DimSpan limit, DimSpan strides) {
  const auto is = [](int64_t value) { return [value](int64_t entry) { return entry == value; }; };
  // All rows of each dim: no op.
  if (equal(limit, builder.module().type(operand).shape) && std::all_of(start.begin(), start.end(), is(0)) &&
      std::all_of(strides.begin(), strides.end(), is(1))) {
    return operand;
  }
  return create_slice(builder, operand, start, limit, strides);
}

ValueId build_slice_along(Builder& builder, ValueId operand, size_t dim, int64_t start, int64_t limit, int64_t stride) {
  Dims limits = builder.module().type(operand).shape, starts(limits.size(), 0), strides(limits.size(), 1);
  starts[dim] = start;
  limits[dim] = limit;
  strides[dim] = stride;
  return build_slice(builder, operand, starts, limits, strides);
}

ValueId build_pad(Builder& builder, ValueId operand, ValueId value, DimSpan low, DimSpan high, DimSpan interior) {
  bool nothing = true;
  for (DimSpan list : {low, high, interior}) {
    for (int64_t entry : list) nothing = nothing && entry == 0;
  }
  return nothing ? operand : create_pad(builder, operand, value, low, high, interior);
}

ValueId build_pad_along(Builder& builder, ValueId operand, int64_t fill, size_t dim, int64_t low, int64_t high,
                        int64_t interior) {
  const TensorType type = builder.module().type(operand);
  const size_t ndim = type.shape.size();
  Dims lows(ndim, 0), highs(ndim, 0), interiors(ndim, 0);
  lows[dim] = low;
  highs[dim] = high;
  interiors[dim] = interior;
  return build_pad(builder, operand, build_scalar(builder, scalar_of(type.dtype, fill)), lows, highs, interiors);
}

// The inverse of a pad: negative padding cuts the edges off, and a stride skips the interior. A negative edge of the
// pad becomes a positive one here, which puts zeros where the pad has cut elements off.
ValueId build_unpad(Builder& builder, ValueId padded, DimSpan low, DimSpan high, DimSpan interior) {
  Dims cut_low = to_dims(low), cut_high = to_dims(high), strides = to_dims(interior);
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    cut_low[dim] = -cut_low[dim];
    cut_high[dim] = -cut_high[dim];
    ++strides[dim];
  }
  const ValueId zero = build_scalar(builder, scalar_of(builder.module().type(padded).dtype, 0));
  const ValueId trimmed = build_pad(builder, padded, zero, cut_low, cut_high);
  const Dims limit = builder.module().type(trimmed).shape;
  return build_slice(builder, trimmed, Dims(strides.size(), 0), limit, strides);
}

ValueId build_concatenate(Builder& builder, const std::vector<ValueId>& operands, int64_t dim) {
  // StableHLO allows a concatenate of one operand, but it would only be copied.
  if (operands.size() == 1) return operands[0];
  return builder.create("stablehlo.concatenate", operands, Attrs{{"dimension", IntAttr{dim}}});
}

ValueId build_row(Builder& builder, ValueId operand, int64_t index) {
  const Dims shape = builder.module().type(operand).shape;
  // A slice keeps the dim with size 1; the reshape drops it.
  return build_reshape(builder, build_slice_along(builder, operand, 0, index, index + 1), DimSpan(shape).subspan(1));
}

ValueId build_dynamic_slice(Builder& builder, ValueId operand, const std::vector<ValueId>& starts, DimSpan sizes) {
  return builder.create("stablehlo.dynamic_slice", with_starts({operand}, starts),
                        Attrs{{"slice_sizes", to_dims(sizes)}});
}

ValueId build_dynamic_update_slice(Builder& builder, ValueId operand, ValueId update,
                                   const std::vector<ValueId>& starts) {
  return builder.create("stablehlo.dynamic_update_slice", with_starts({operand, update}, starts));
}

std::vector<ValueId> starts_of_row(Builder& builder, ValueId stack, size_t dim, ValueId index) {
  const size_t ndim = builder.module().type(stack).shape.size();
  if (ndim == 1) return {index};
  std::vector<ValueId> starts(ndim, build_scalar(builder, scalar_of(builder.module().type(index).dtype, 0)));
  starts[dim] = index;
  return starts;
}

ValueId build_dynamic_row(Builder& builder, ValueId stack, size_t dim, ValueId index, const Dims& shape) {
  Dims sizes = builder.module().type(stack).shape;
  sizes[dim] = 1;
  return build_reshape(builder, build_dynamic_slice(builder, stack, starts_of_row(builder, stack, dim, index), sizes),
                       shape);
}

}  // namespace shardwise
