// SPDX-License-Identifier: Apache-2.0
//
// CHLO's special functions and the few elementwise ops of real numbers that have no kernel: other ops make them up.
//
//   %1 = chlo.digamma %0 : tensor<4xf32> -> tensor<4xf32>                                     ([i])->([i]) {i=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> special_function_ops();

}  // namespace shardwise
