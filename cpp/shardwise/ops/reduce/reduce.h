// SPDX-License-Identifier: Apache-2.0
//
// reduce: combines the elements along dims with one init value, by a region of two scalars.
//
//   %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [1]
//       : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>                      ([i, j], [])->([i]) reduction={j}
//
// Sharded {"x"} on dim 1, each device sums its own columns, and the result is unreduced over x. The init value must
// count once, so devices other than the first use the neutral element. Padding along j is filled with the neutral
// element.
//
// Several tensors are combined row by row, by any associative region (reduce_region_kernels.cpp):
//   %1:2 = stablehlo.reduce(%x init: %v), (%n init: %i) across dimensions = [1] : …   reducer(%a, %b) (%j, %k) {…}
// Sharded on dim 1, the devices exchange their partial results (reduce_region_partition.cpp), and nothing is left
// unreduced.
#pragma once

#include <optional>
#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> reduce_ops();

std::optional<Kernel> prepare_reduce(const OpView& op, const KernelTypes& types);

// The files reduce_*.cpp define:
// For stablehlo.reduce with the reducer prod over `dims`.
void vjp_product(VjpContext& context, DimSpan dims);
void vjp_reduce_region(VjpContext& context);
// Batched init values cannot be scalars of the batched op, so they are combined with its results.
void batch_reduce_region(BatchContext& context);
void combine_partial_results(PartitionContext& context);
void combine_gathered_results(PartitionContext& context);  // each device combines all of them
bool has_argument_kernel(DType index);                     // whether the loops for pairs know this dtype of indices
std::optional<Kernel> prepare_reduce_arguments(const OpView& op, const KernelTypes& types, Reducer reducer);
std::optional<Kernel> prepare_reduce_region(const OpView& op, const KernelTypes& types);

}  // namespace shardwise
