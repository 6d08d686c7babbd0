// SPDX-License-Identifier: Apache-2.0
//
// chlo.ragged_dot: a dot per group of rows; the sizes of the groups are an operand.
//
//   %3 = "chlo.ragged_dot"(%0, %1, %sizes) <{ragged_dot_dimension_numbers = …}>
//          : (tensor<8x4xf32>, tensor<2x4x3xf32>, tensor<2xi64>) -> tensor<8x3xf32>
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> ragged_dot_ops();

}  // namespace shardwise
