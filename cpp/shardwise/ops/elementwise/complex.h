// SPDX-License-Identifier: Apache-2.0
//
// Complex numbers from their parts, their parts, and what exists for complex numbers only; no kernels.
//
//   %2 = stablehlo.complex %0, %1 : tensor<4xcomplex<f32>>                                    ([i], [i])->([i]) {i=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> complex_ops();

}  // namespace shardwise
