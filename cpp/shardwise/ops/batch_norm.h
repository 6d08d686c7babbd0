// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization: statistics per feature, over all other dims.
//
//   %5 = "stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) <{epsilon = …, feature_index = 1 : i64}> : …
//   ([i, j], [j], [j], [j], [j])->([i, j]) {i=4, j=8}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> batch_norm_ops();

}  // namespace shardwise
