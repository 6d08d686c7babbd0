// SPDX-License-Identifier: Apache-2.0
//
// reduce_window: combines the elements under a window that moves over the dims, by a region of two scalars.
//
//   window 3 over 5 elements, padding (1, 1), stride 2           [a b c d e]  ->  [0+a+b, b+c+d, d+e+0]
//   %1 = "stablehlo.reduce_window"(%0, %cst) <{padding = dense<[[1, 1]]>, window_dimensions = array<i64: 3>,
//        window_strides = array<i64: 2>, …}> ({…add…}) : (tensor<5xf32>, tensor<f32>) -> tensor<3xf32>
//
// Padding and the holes of a base dilation are init values, and one more init value starts each window. A sum over 3
// elements of which one is padding counts the init value twice (StableHLO's pad, slice and reduce).
//
// Cumulative ops have the prefix form: a window as long as the dim, padded on one side so that it ends (or starts) at
// each element in turn. Such a dim may stay sharded: each device combines its own rows, and the totals of the shards
// before it (cumulative_partition.cpp).
//
//   cumsum of n elements       window n, padding (n-1, 0)         ([i])->([i]) {i=n} permutation={i}
//   from the other end         window n, padding (0, n-1)
//
// A dim with a window of 1, stride 1 and no padding passes through; other dims are whole on every device.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> reduce_window_ops();

std::optional<Kernel> prepare_reduce_window(const OpView& op, const KernelTypes& types);
void vjp_reduce_window(VjpContext& context);

// For a reduce_window in which each sharded dim has the prefix form or passes through.
void partition_by_gathered_totals(PartitionContext& context);  // the first form
void partition_by_totals(PartitionContext& context);           // the second form
void partition_by_chain(PartitionContext& context);            // the third form

}  // namespace shardwise
