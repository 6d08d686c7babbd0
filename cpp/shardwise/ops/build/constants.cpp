// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/constants.h"

#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

ValueId build_constant(Builder& builder, NdArray data) {
  return builder.create("stablehlo.constant", {}, Attrs{{"value", DenseAttr{std::move(data)}}});
}

ValueId build_splat(Builder& builder, DimSpan shape, Scalar value) {
  // NdArray::full stores one element with strides of 0, so a splat of any shape is cheap to make, print and compare.
  return build_constant(builder, NdArray::full(value.dtype, to_dims(shape), value));
}

ValueId build_scalar(Builder& builder, Scalar value) { return build_splat(builder, {}, value); }

ValueId build_zeros(Builder& builder, const TensorType& type) {
  return build_splat(builder, type.shape, scalar_of(type.dtype, 0));
}

ValueId build_list(Builder& builder, DType dtype, DimSpan values) {
  const NdArray list = NdArray::empty(dtype, {std::ssize(values)});
  for (int64_t i = 0; i < list.size(); ++i) {
    store(scalar_of(dtype, values[static_cast<size_t>(i)]), list.data() + i * item_size(dtype));
  }
  return build_constant(builder, list);
}

ValueId build_iota(Builder& builder, DType dtype, DimSpan shape, int64_t dim) {
  return builder.create("stablehlo.iota", {}, Attrs{{"iota_dimension", IntAttr{dim}}},
                        {builder.context().tensor(dtype, shape)});
}

}  // namespace shardwise
