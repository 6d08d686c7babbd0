// SPDX-License-Identifier: Apache-2.0
//
// Ops whose shapes, sizes or bounds are operands; a text may hold them with static result types.
//
//   %1 = stablehlo.dynamic_reshape %0, %shape : (tensor<8xf32>, tensor<2xi32>) -> tensor<4x2xf32>
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> dynamic_shape_ops();

}  // namespace shardwise
