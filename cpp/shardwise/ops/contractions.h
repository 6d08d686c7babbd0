// SPDX-License-Identifier: Apache-2.0
//
// Contractions other than dot_general: dot, einsum, and CHLO's ragged_dot.
//
//   %2 = stablehlo.einsum %0, %1, config = "ij,jk->ik" : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
//   ([i, k], [k, j])->([i, j]) {i=4, j=3, k=8} reduction={k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> contraction_ops();

}  // namespace shardwise
