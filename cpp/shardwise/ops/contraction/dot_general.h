// SPDX-License-Identifier: Apache-2.0
//
// dot_general: a product of two tensors, summed over the contracting dims, for each index of the batching dims. The
// dims of the result are the batching, then the free lhs, then the free rhs dims.
//
//   %2 = stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1]
//       : (tensor<2x4x8xf32>, tensor<2x8x16xf32>) -> tensor<2x4x16xf32>
//   ([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=4, k=16, l=8} reduction={l}
//
// The result dtype may be wider than the operands' if it is declared. 16-bit floats accumulate in float32 and are
// rounded once. Booleans compute "or of ands". Integers wrap.
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_builder.h"

namespace shardwise {

std::span<const OpDef> dot_general_ops();

std::optional<Kernel> prepare_dot_general(const OpView& op, const KernelTypes& types);

// The CPU kernels that OpenBLAS chose: "SkylakeX", "Haswell", …
std::string_view blas_core_name();

struct DotDims {
  Dims lhs_batching, rhs_batching, lhs_contracting, rhs_contracting;
  Dims lhs_free(int64_t ndim) const;  // ascending
  Dims rhs_free(int64_t ndim) const;
};

// These read and write the attribute `dot_dimension_numbers`. Missing fields are empty lists.
DotDims dot_dims(const Attrs& attrs, std::string_view name = "dot_dimension_numbers");
StructAttr dot_attribute(const DotDims& dims);

Dims dot_shape(const TensorType& lhs, const TensorType& rhs, const DotDims& dims);

// Maps the dims of a product, which begin at `result_dim` of the result. The lhs stays whole along its dim `whole`.
void map_dot(RuleBuilder& rule, const OpView& op, const DotDims& dims, size_t result_dim = 0, int64_t whole = -1);

// `attrs` may contain precision_config and others; its dimension numbers are replaced.
ValueId build_dot(Builder& builder, ValueId lhs, ValueId rhs, const DotDims& dims, DType result, Attrs attrs = {});

}  // namespace shardwise
