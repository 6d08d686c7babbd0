// SPDX-License-Identifier: Apache-2.0
//
// Ops that rearrange the elements of one tensor: transpose, reshape, broadcast_in_dim, reverse. Their kernels return
// views; only a reshape that no strides can express copies.
//
//   %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>   ([j, i])->([i, j])
//   %1 = stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>                     ([i, j])->([ij])
//   %2 = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32> ([j])->([i, j])
//   %3 = stablehlo.reverse %x, dims = [0] : tensor<4x8xf32>                  ([i, j])->([i, j]) permutation={i}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> layout_ops();

std::optional<Kernel> prepare_transpose(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_reshape(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_broadcast_in_dim(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_reverse(const OpView& op, const KernelTypes& types);

// Each returns its operand when the op would be an identity.
ValueId build_transpose(Builder& builder, ValueId operand, DimSpan permutation);
ValueId build_reshape(Builder& builder, ValueId operand, DimSpan shape);
ValueId build_broadcast(Builder& builder, ValueId operand, DimSpan shape, DimSpan broadcast_dimensions);
ValueId build_reverse(Builder& builder, ValueId operand, DimSpan dimensions);
ValueId build_convert(Builder& builder, ValueId operand, DType dtype);
// Moves one dim to the front and keeps the order of the others.
ValueId build_move_to_front(Builder& builder, ValueId operand, int64_t dim);

// The padding of uneven dims after an op that does not define it: garbage, or none if no dim is uneven.
Padding result_padding(const LocalLayout& layout);
// The padding after an op that only moves the elements of operand 0.
Padding moved_padding(const PartitionContext& context);

}  // namespace shardwise
