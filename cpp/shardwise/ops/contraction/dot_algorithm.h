// SPDX-License-Identifier: Apache-2.0
//
// StableHLO's `algorithm` of a dot_general: how operands are rounded or split before the product, and the dtype of
// sums.
//
//   algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, …,
//                num_primitive_operations = 3, …>
//   {.accumulation = f32, .precision = kBF16, .products = {{0, 1}, {1, 0}, {0, 0}}}
//
// Here x is approximately x0 + x1, and x · y is approximately x0 · y1 + x1 · y0 + x0 · y0, where each part is a
// bfloat16.
#pragma once

#include <utility>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

struct DotAlgorithm {
  enum class Precision : uint8_t { kOperand, kF16, kBF16, kTF32 };  // kOperand: the dtype of the accumulation

  DType accumulation = DType::kF32;
  Precision precision = Precision::kOperand;
  std::vector<std::pair<int, int>> products = {{0, 0}};  // pairs of parts of lhs and rhs, smallest first
  int parts() const { return products.size() == 1 ? 1 : products.size() == 3 ? 2 : 3; }
};

// The dtypes decide if the attribute is missing. Throws UnsupportedError for an algorithm that no kernel computes
// exactly.
DotAlgorithm dot_algorithm(const OpView& op);
void verify_dot_algorithm(const OpView& op);  // OpDef::verify_runnable

// Whether the hardware decides how precise a product is (also of a convolution): no algorithm, no precision_config but
// DEFAULT.
bool has_default_precision(const OpView& op);

// Throws ShapeError for an algorithm together with a precision other than DEFAULT, as in StableHLO.
void expect_one_precision(const InferContext& op);

// The operand as parts in the accumulation dtype, whose sum approximates it.
std::vector<NdArray> dot_parts(KernelContext& context, const NdArray& operand, const DotAlgorithm& algorithm);

}  // namespace shardwise
