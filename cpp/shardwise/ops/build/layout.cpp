// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/layout.h"

#include <algorithm>

#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

ValueId build_transpose(Builder& builder, ValueId operand, DimSpan permutation) {
  // A sorted permutation is the identity. These builders create no op that changes nothing: each would have to be
  // simplified away, and would be one more value to propagate through.
  if (std::is_sorted(permutation.begin(), permutation.end())) return operand;
  return builder.create("stablehlo.transpose", {operand}, Attrs{{"permutation", to_dims(permutation)}});
}

ValueId build_reshape(Builder& builder, ValueId operand, DimSpan shape) {
  const TensorType type = builder.module().type(operand);
  if (equal(type.shape, shape)) return operand;
  return builder.create("stablehlo.reshape", {operand}, {}, {builder.context().tensor(type.dtype, shape)});
}

ValueId build_broadcast(Builder& builder, ValueId operand, DimSpan shape, DimSpan broadcast_dimensions) {
  const TensorType type = builder.module().type(operand);
  // Equal shapes are not enough: unsorted dims also transpose, as [1, 0] of a square matrix.
  if (equal(type.shape, shape) && std::is_sorted(broadcast_dimensions.begin(), broadcast_dimensions.end())) {
    return operand;
  }
  return builder.create("stablehlo.broadcast_in_dim", {operand},
                        Attrs{{"broadcast_dimensions", to_dims(broadcast_dimensions)}},
                        {builder.context().tensor(type.dtype, shape)});
}

ValueId build_reverse(Builder& builder, ValueId operand, DimSpan dimensions) {
  if (dimensions.empty()) return operand;
  return builder.create("stablehlo.reverse", {operand}, Attrs{{"dimensions", to_dims(dimensions)}});
}

ValueId build_convert(Builder& builder, ValueId operand, DType dtype) {
  const TensorType type = builder.module().type(operand);
  if (type.dtype == dtype) return operand;
  return builder.create("stablehlo.convert", {operand}, {}, {builder.context().tensor(dtype, type.shape)});
}

ValueId build_move_to_front(Builder& builder, ValueId operand, int64_t dim) {
  // The other dims keep their order.
  const Dims others = other_dims(builder.module().type(operand).ndim(), DimSpan(&dim, 1));
  return build_transpose(builder, operand, with_leading(dim, others));
}

}  // namespace shardwise
