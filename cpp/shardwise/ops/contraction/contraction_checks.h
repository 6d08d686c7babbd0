// SPDX-License-Identifier: Apache-2.0
//
// Checks the operands of the contractions that are written without dot_general.
#pragma once

#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

inline void expect_same_dtype(const InferContext& op, size_t count) {
  for (size_t i = 1; i < count; ++i) op.expect_same_dtype(0, i);
}

// The result may have another dtype: sums of int8 in int32.
inline TypeId contracted(const InferContext& op, Dims shape) {
  const DType dtype = op.declared().empty() ? op.operand(0).dtype : op.declared_result().dtype;
  return result_or_declared(op, {dtype, std::move(shape)});
}

}  // namespace shardwise
