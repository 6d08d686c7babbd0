// SPDX-License-Identifier: Apache-2.0
//
// Gradients of cholesky and triangular_solve. Complex cotangents are JAX's: those of the transposed linear map, which
// conjugates nothing.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

void vjp_cholesky(VjpContext& context);
void vjp_triangular_solve(VjpContext& context);

}  // namespace shardwise
