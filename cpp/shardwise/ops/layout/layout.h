// SPDX-License-Identifier: Apache-2.0
//
// Ops that lay the same elements out in another way: transpose, reshape, broadcast_in_dim, reverse. Their kernels
// return views; only a reshape that no strides can express copies.
//
//   %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>       ([j, i])->([i, j])
//   %1 = stablehlo.reshape %x : (tensor<4x8xf32>) -> tensor<32xf32>                         ([i, j])->([ij])
//   %2 = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>     ([j])->([i, j])
//   %3 = stablehlo.reverse %x, dims = [0] : tensor<4x8xf32>                                 ([i, j])->([i, j])
//   permutation={i}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> layout_ops();

void kernel_transpose(KernelContext& context);
void kernel_reshape(KernelContext& context);
void kernel_broadcast_in_dim(KernelContext& context);
void kernel_reverse(KernelContext& context);

}  // namespace shardwise
