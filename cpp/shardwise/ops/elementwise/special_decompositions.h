// SPDX-License-Identifier: Apache-2.0
//
// CHLO's special functions as elementwise ops, by published approximations. All but erf_inv compute in f64 and round
// once; the sources are in the .cpp file.
//
//   digamma             about 1e-15 of the larger of 1 and the result
//   zeta, polygamma     relative error about 1e-14, for q >= -8; NaN below
//   bessel_i1e          relative error about 1e-15
//   erf_inv             relative error about 3e-7 in f32, 1e-15 in f64
//
// zeta and bessel_i1e are differentiated by their ops, which holds for zeta's two operands.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

void decompose_digamma(DecomposeContext& context);
void decompose_zeta(DecomposeContext& context);
void decompose_polygamma(DecomposeContext& context);
void decompose_bessel_i1e(DecomposeContext& context);
void decompose_erf_inv(DecomposeContext& context);
void vjp_digamma(VjpContext& context);
void vjp_polygamma(VjpContext& context);
void vjp_erf_inv(VjpContext& context);

// erf_inv(x) is x times a polynomial: that of the first branch with w < below for w = -log(1 - x^2). Its argument is w
// in the first branch and the root of w in the others, less the offset. sw.random computes with the same numbers.
struct ErfInvBranch {
  double below, offset;
  std::span<const double> coefficients;  // the highest power first
};
std::span<const ErfInvBranch> erf_inv_branches(DType dtype);  // of float64, and of float32 for the others

}  // namespace shardwise
