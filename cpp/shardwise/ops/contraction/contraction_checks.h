// SPDX-License-Identifier: Apache-2.0
//
// Checks the operands of contractions, and infers their results and the dtype of their sums.
#pragma once

#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

inline void expect_same_dtype(const InferContext& op, size_t count) {
  for (size_t i = 1; i < count; ++i) op.expect_same_dtype(0, i);
}

// The result may have another dtype: sums of int8 in int32.
inline DType contracted_dtype(const InferContext& op) {
  return op.declared().empty() ? op.operand(0).dtype : op.declared_result().dtype;
}

inline TypeId contracted(const InferContext& op, Dims shape) {
  return result_or_declared(op, {contracted_dtype(op), std::move(shape)});
}

// The dtype of sums before the last op, which rounds to the dtype of the result.
inline DType dtype_of_sums(DType result) { return is_float(result) && bit_width(result) < 32 ? DType::kF32 : result; }

}  // namespace shardwise
