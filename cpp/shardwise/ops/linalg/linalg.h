// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra over the last two dims; the dims before are a batch: cholesky and triangular_solve.
//
//   %1 = stablehlo.cholesky %0, lower = true : tensor<2x4x4xf32>
//   ([i, j, k])->([i, j, k]) {i=2, j=4, k=4} need_replication={j, k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> linalg_ops();

}  // namespace shardwise
