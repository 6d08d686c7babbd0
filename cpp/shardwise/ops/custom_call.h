// SPDX-License-Identifier: Apache-2.0
//
// custom_call: a call that only its target understands. A table gives the sharding rules of known targets. Other calls
// do not propagate shardings.
//
//   %1:2 = stablehlo.custom_call @Eigh(%0) : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4xf32>)
//   ([i, j, k])->([i, j, k], [i, k]) {i=2, j=4, k=4} need_replication={j, k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> custom_call_ops();

}  // namespace shardwise
