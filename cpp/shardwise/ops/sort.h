// SPDX-License-Identifier: Apache-2.0
//
// sort, and top_k: the largest elements of each row.
//
//   %1:2 = chlo.top_k(%0, k = 3) : tensor<4x8xf32> ->(tensor<4x3xf32>, tensor<4x3xi32>)
//   ([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication={j} blocked_propagation={j}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> sort_ops();

}  // namespace shardwise
