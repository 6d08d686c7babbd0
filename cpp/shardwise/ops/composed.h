// SPDX-License-Identifier: Apache-2.0
//
// Ops that run a region or a function, and ops whose shapes are operands; a text may use the latter with static types.
//
//   %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({…}) : (tensor<4xf32>) -> tensor<4xf32>
//   ([i])->([i]) {i=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> composed_ops();

}  // namespace shardwise
