// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.broadcast: repeats a tensor along new leading dims.
//
//   %1 = stablehlo.broadcast %0, sizes = [4] : (tensor<8xf32>) -> tensor<4x8xf32>            ([j])->([i, j]) {i=4, j=8}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> broadcast_ops();

}  // namespace shardwise
