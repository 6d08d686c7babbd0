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

// Rows of functions.def …
#define DECLARE_smooth(name, vjp, ...) void vjp(VjpContext& context);
#define DECLARE_stepped(...)
#define FUNCTION(Code, operands, accepts, loops, op) DECLARE_##op
#include "shardwise/tile/functions.def"
#undef DECLARE_smooth
#undef DECLARE_stepped

// … and of the other ops.
void vjp_square(VjpContext& context);
void vjp_select(VjpContext& context);
void vjp_clamp(VjpContext& context);
void vjp_convert(VjpContext& context);
void vjp_reduce_precision(VjpContext& context);

}  // namespace shardwise
