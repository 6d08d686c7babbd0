// SPDX-License-Identifier: Apache-2.0
//
// top_k: the k largest elements of each row, in the order of TOTALORDER; of equal ones, those that come first.
//
//   %1:2 = chlo.top_k(%0, k = 3) : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
//   ([i, j])->([i, j], [i, j]) {i=4, j=8} need_replication={j} blocked_propagation={j}
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> top_k_ops();

struct Winners {
  ValueId values, places;
};
Winners build_top_k(Builder& builder, ValueId operand, int64_t k);

}  // namespace shardwise
