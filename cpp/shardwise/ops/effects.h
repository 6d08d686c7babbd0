// SPDX-License-Identifier: Apache-2.0
//
// Ops with effects, ordered by tokens; random numbers; and ops that query the device.
//
//   %0 = stablehlo.create_token : !stablehlo.token
//   %1 = "stablehlo.send"(%arg0, %0) <{channel_handle = …}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> effect_ops();

}  // namespace shardwise
