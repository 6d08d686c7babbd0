// SPDX-License-Identifier: Apache-2.0
//
// The custom calls that compute linear algebra: those of JAX's texts, with JAX's operands, results and options, and
// shardwise's own, which np.linalg records.
//
//   lapack_{s,d,c,z}{potrf, getrf, trsm, …}_ffi        JAX on CPU
//   LuDecomposition, Qr, Eigh, ProductOfElementaryHouseholderReflectors     JAX on TPU
//   shardwise.{lu, qr, eigh, svd, solve, …}            results as NumPy has them, NaN where LAPACK does not succeed
#pragma once

#include <span>

#include "shardwise/ops/linalg/batched_call.h"

namespace shardwise {

std::span<const BatchedCall> lapack_calls();
std::span<const BatchedCall> tpu_linalg_calls();
std::span<const BatchedCall> decomposition_calls();

void register_linalg_calls();  // once, as custom calls

// stablehlo.cholesky and stablehlo.triangular_solve.
extern const BatchedCall kCholeskyCall;
extern const BatchedCall kTriangularSolveCall;

}  // namespace shardwise
