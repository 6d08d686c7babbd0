// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra over the last two dims, and Fourier transforms over the last few. The leading dims are a batch.
//
//   %1 = stablehlo.cholesky %0, lower = true : tensor<2x4x4xf32>
//   ([i, j, k])->([i, j, k]) {i=2, j=4, k=4} need_replication={j, k}
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> linalg_ops();

}  // namespace shardwise
