// SPDX-License-Identifier: Apache-2.0
//
// Ops with effects, ordered by tokens: the host (infeed, outfeed) and channels (send, recv).
//
//   %0 = stablehlo.create_token : !stablehlo.token
//   %1 = "stablehlo.send"(%arg0, %0) <{channel_handle = …}> : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> token_ops();

// Whether the op only makes a token: its decomposition is the empty array that stands for one
// (transforms/inline_calls.cpp).
bool makes_token(const OpDef& def);

}  // namespace shardwise
