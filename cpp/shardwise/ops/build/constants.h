// SPDX-License-Identifier: Apache-2.0
//
// Creates constants and iotas.
//
//   build_splat(builder, Dims{4, 8}, scalar_of(DType::kF32, 1))      one element in memory, whatever the shape
#pragma once

#include "shardwise/ir/builder.h"

namespace shardwise {

ValueId build_constant(Builder& builder, NdArray data);
ValueId build_splat(Builder& builder, DimSpan shape, Scalar value);
ValueId build_scalar(Builder& builder, Scalar value);
ValueId build_zeros(Builder& builder, const TensorType& type);
// A list of small integers, of any dtype that can hold them.
ValueId build_list(Builder& builder, DType dtype, DimSpan values);
ValueId build_iota(Builder& builder, DType dtype, DimSpan shape, int64_t dim);

}  // namespace shardwise
