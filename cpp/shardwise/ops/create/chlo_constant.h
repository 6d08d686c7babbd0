// SPDX-License-Identifier: Apache-2.0
//
// chlo.constant and chlo.constant_like, which has the shape of its operand.
//
//   %1 = "chlo.constant_like"(%0) <{value = 1.0 : f32}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> chlo_constant_ops();

}  // namespace shardwise
