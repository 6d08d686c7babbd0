// SPDX-License-Identifier: Apache-2.0
//
// Checks the operands of elementwise ops.
#pragma once

#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/refusals.h"

namespace shardwise {

inline void expect_same_types(const InferContext& op) {
  for (size_t i = 1; i < op.operand_count(); ++i) op.expect_same_dtype(0, i);
  expect_same_shapes(op);
}

inline void expect_float(const InferContext& op) {
  expect_dtype(op, is_float(op.operand(0).dtype), "operands must be floats", "convert them first");
}

// Operands and result of one type.
template <int Count, bool Complex>
void infer_float(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(Count);
  if (!Complex || !is_complex(op.operand(0).dtype)) expect_float(op);
  expect_same_types(op);
  results.push_back(op.operand_type(0));
}

// The specification accepts complex operands of more ops than it defines on them.
[[noreturn]] inline void refuse_complex(const OpView& op) {
  fail<UnsupportedError>(op.name(), "operands must be real to run it", op.operand_type(0).text(), refusals::kParts);
}
inline void verify_real(const OpView& op) {
  if (is_complex(op.operand_type(0).dtype)) refuse_complex(op);
}

// complex<f32> of f32, complex<f64> of f64.
inline DType complex_of(const InferContext& op) {
  const DType dtype = op.operand(0).dtype;
  expect_dtype(op, dtype == DType::kF32 || dtype == DType::kF64, "operands must be f32 or f64", "convert them first");
  return dtype == DType::kF32 ? DType::kC64 : DType::kC128;
}

}  // namespace shardwise
