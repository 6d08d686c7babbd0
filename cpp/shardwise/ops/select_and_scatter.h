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

namespace shardwise {

std::span<const OpDef> select_and_scatter_ops();

}  // namespace shardwise
