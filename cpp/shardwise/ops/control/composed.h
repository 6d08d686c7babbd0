// SPDX-License-Identifier: Apache-2.0
//
// Ops that run a region or a function, and those whose shapes are operands, which may stand in a text with static
// types.
//
//   %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({…}) : (tensor<4xf32>) -> tensor<4xf32>
//   ([i])->([i]) {i=4}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> composed_ops();

}  // namespace shardwise
