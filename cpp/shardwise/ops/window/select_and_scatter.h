// SPDX-License-Identifier: Apache-2.0
//
// select_and_scatter, the gradient of max pooling: adds each element of the source to the element that its window of
// the operand selects.
//
//   %3 = "stablehlo.select_and_scatter"(%0, %1, %2) <{window_dimensions = array<i64: 2, 1>, window_strides = …}>
//          ({…GE…}, {…add…}) : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<f32>) -> tensor<4x8xf32>
//   ([j, k], [i, k], [])->([j, k]) {i=2, j=4, k=8} need_replication={i} permutation={j}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

std::span<const OpDef> select_and_scatter_ops();

// The windows over some rows of the operand.
struct SelectedWindows {
  ValueId operand, source, init;
  Window window;
  // By dim: which rows a window may select, and which windows there are, as tensor<rows x i1>. None: all.
  std::vector<ValueId> rows_inside, windows_inside;
};
// The place that each window selects, then a scatter. `op` has the regions and tells which dims have windows.
ValueId build_select_and_scatter(Builder& builder, const OpView& op, const SelectedWindows& parts);

// A sharded dim with windows: each device receives the elements of the source whose windows have rows of its own, and
// the rows of the operand that these windows compare.
//
//   64 rows on x=8, window 3, stride 1      10 elements of the source, 12 rows of the operand
void partition_select_and_scatter(PartitionContext& context);
std::vector<FactorId> moved_factors_of_select_and_scatter(const OpView& op, const ShardingRule& rule);
void placements_of_select_and_scatter(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                      std::vector<OpPlacement>& found);

}  // namespace shardwise
