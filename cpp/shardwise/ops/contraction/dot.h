// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.dot: the product of vectors and matrices.
//
//   %2 = stablehlo.dot %0, %1 : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
//   ([i, k], [k, j])->([i, j]) {i=4, j=3, k=8} reduction={k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> dot_ops();

}  // namespace shardwise
