// SPDX-License-Identifier: Apache-2.0
//
// custom_call: a call that only its target understands.
//
//   %1:2 = stablehlo.custom_call @Eigh(%0) : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4xf32>)
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> custom_call_ops();

}  // namespace shardwise
