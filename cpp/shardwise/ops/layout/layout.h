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

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> layout_ops();

// A reshape of sharded dims that do not divide evenly: rows of consecutive elements are exchanged.
//
//   12x12 -> 144 on x=8      each device has two rows of 12, and receives what it lacks of its 18 elements
std::vector<FactorId> uneven_factors_of_reshape(const OpView& op, const ShardingRule& rule);
void partition_by_rows(PartitionContext& context);
// The first dim of each group gets the axes that its operand has: 60 columns of 30 heads on x=8 are 4 heads each.
std::vector<AxisList> result_of_rows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> operand);

// OpDef::fold of reverse, for reverses that undo each other; annotated values and those that others read stay:
//
//   reverse(reverse(x))                             x
//   reverse(cumulative sum(reverse(x)))             a cumulative sum from the other end
ValueId fold_reverse(Builder& builder, const OpView& op);

// OpDef::fold of the other three. Each movement has one form, however it is written, and a reshape where the elements
// keep their order. Reshapes propagate first, and broadcasts last: a batch dim must not depend on the spelling of
// ids[:, None]. Annotated values stay.
//
//   broadcast x : (tensor<8xi32>) -> tensor<8x1xi32>        reshape x                 only dims of size 1 are added
//   transpose x : (tensor<8x1xf32>) -> tensor<1x8xf32>      reshape x                 only dims of size 1 move
//   reshape(reshape(x)), transpose(transpose(x))            one reshape, one transpose, or x
//   broadcast(broadcast(x)), broadcast(x[:, None])          broadcast x
//   reshape(stack(x, y)), the new dim merged                concatenate x, y
ValueId fold_transpose(Builder& builder, const OpView& op);
ValueId fold_reshape(Builder& builder, const OpView& op);
ValueId fold_broadcast_in_dim(Builder& builder, const OpView& op);

std::optional<Kernel> prepare_transpose(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_reshape(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_broadcast_in_dim(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_reverse(const OpView& op, const KernelTypes& types);

}  // namespace shardwise
