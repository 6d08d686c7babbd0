// SPDX-License-Identifier: Apache-2.0
//
// CHLO's binary ops that broadcast their operands as NumPy does; no kernels.
//
//   %2 = chlo.broadcast_add %0, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
//   ([i, j], [j])->([i, j]) {i=8, j=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> chlo_broadcast_ops();

}  // namespace shardwise
