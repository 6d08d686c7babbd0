// SPDX-License-Identifier: Apache-2.0
//
// Derivatives of the elementwise ops, as ops, with JAX's conventions: at ties of maximum and minimum each operand gets
// half of the cotangent, abs has slope sign(x), power guards log(0), and clamp passes the cotangent strictly between
// its bounds.
//
//   vjp_tanh:  cotangent of x  =  g * ((1 - r) * (1 + r))      with g the cotangent and r = tanh(x) the result
//
// Integer operands get no cotangent.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

void vjp_abs(VjpContext& context);
void vjp_negate(VjpContext& context);
void vjp_sine(VjpContext& context);
void vjp_cosine(VjpContext& context);
void vjp_tan(VjpContext& context);
void vjp_tanh(VjpContext& context);
void vjp_exponential(VjpContext& context);
void vjp_exponential_minus_one(VjpContext& context);
void vjp_log(VjpContext& context);
void vjp_log_plus_one(VjpContext& context);
void vjp_logistic(VjpContext& context);
void vjp_sqrt(VjpContext& context);
void vjp_rsqrt(VjpContext& context);
void vjp_cbrt(VjpContext& context);
void vjp_square(VjpContext& context);
void vjp_erf(VjpContext& context);
void vjp_erfc(VjpContext& context);
void vjp_sinh(VjpContext& context);
void vjp_cosh(VjpContext& context);
void vjp_asin(VjpContext& context);
void vjp_acos(VjpContext& context);
void vjp_atan(VjpContext& context);
void vjp_asinh(VjpContext& context);
void vjp_acosh(VjpContext& context);
void vjp_atanh(VjpContext& context);
void vjp_add(VjpContext& context);
void vjp_subtract(VjpContext& context);
void vjp_multiply(VjpContext& context);
void vjp_divide(VjpContext& context);
void vjp_remainder(VjpContext& context);
void vjp_power(VjpContext& context);
void vjp_atan2(VjpContext& context);
void vjp_maximum_minimum(VjpContext& context);
void vjp_select(VjpContext& context);
void vjp_clamp(VjpContext& context);
void vjp_convert(VjpContext& context);
void vjp_reduce_precision(VjpContext& context);

}  // namespace shardwise
