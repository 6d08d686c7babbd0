// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops without a kernel: complex numbers, CHLO's special functions, and CHLO's ops that broadcast their
// operands.
//
//   %2 = stablehlo.complex %0, %1 : tensor<4xcomplex<f32>>                    ([i], [i])->([i]) {i=4}
//   %3 = chlo.broadcast_add %0, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
//                                                                             ([i, j], [j])->([i, j]) {i=8, j=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> special_function_ops();

}  // namespace shardwise
