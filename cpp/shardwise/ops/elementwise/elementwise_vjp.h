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

#include <numbers>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/term.h"

namespace shardwise {

inline bool is_differentiable(const VjpContext& context, size_t operand) {
  return context.needs(operand) && is_inexact(context.op().operand_type(operand).dtype);
}

// formula(g, x, r): cotangent, operand and result of a unary op.
template <auto formula>
void unary_vjp(VjpContext& context) {
  if (!is_differentiable(context, 0)) return;
  Builder* builder = &context.builder();
  const Term g{builder, context.cotangent()};
  context.set(0, formula(g, Term{builder, context.operand(0)}, Term{builder, context.result()}).id);
}

// lhs(g, x, y, r) and rhs(g, x, y, r): the cotangents of the two operands.
template <auto lhs, auto rhs>
void binary_vjp(VjpContext& context) {
  Builder* builder = &context.builder();
  const Term x{builder, context.operand(0)}, y{builder, context.operand(1)}, r{builder, context.result()};
  if (is_differentiable(context, 0)) context.set(0, lhs(Term{builder, context.cotangent()}, x, y, r).id);
  if (is_differentiable(context, 1)) context.set(1, rhs(Term{builder, context.cotangent()}, x, y, r).id);
}

inline Term one_minus_square(Term x) { return (1.0 - x) * (x + 1.0); }  // precise near |x| = 1

constexpr VjpFn vjp_negate = unary_vjp<[](Term g, Term, Term) { return -g; }>;
constexpr VjpFn vjp_sine = unary_vjp<[](Term g, Term x, Term) { return g * x.op("stablehlo.cosine"); }>;
constexpr VjpFn vjp_cosine = unary_vjp<[](Term g, Term x, Term) { return -(g * x.op("stablehlo.sine")); }>;
// Formulas use the result where they can, so that no function is computed twice: the slope of tan is 1 + r^2.
constexpr VjpFn vjp_tan = unary_vjp<[](Term g, Term, Term r) { return g * (r * r + 1.0); }>;
constexpr VjpFn vjp_tanh = unary_vjp<[](Term g, Term, Term r) { return g * one_minus_square(r); }>;
constexpr VjpFn vjp_exponential = unary_vjp<[](Term g, Term, Term r) { return g * r; }>;
constexpr VjpFn vjp_exponential_minus_one = unary_vjp<[](Term g, Term, Term r) { return g * (r + 1.0); }>;
constexpr VjpFn vjp_log = unary_vjp<[](Term g, Term x, Term) { return g / x; }>;
constexpr VjpFn vjp_log_plus_one = unary_vjp<[](Term g, Term x, Term) { return g / (x + 1.0); }>;
constexpr VjpFn vjp_logistic = unary_vjp<[](Term g, Term, Term r) { return g * (r * (1.0 - r)); }>;
constexpr VjpFn vjp_sqrt = unary_vjp<[](Term g, Term, Term r) { return g * (0.5 / r); }>;
constexpr VjpFn vjp_rsqrt = unary_vjp<[](Term g, Term x, Term r) { return g * ((r / x) * -0.5); }>;
constexpr VjpFn vjp_cbrt = unary_vjp<[](Term g, Term, Term r) { return g / (r * r * 3.0); }>;
constexpr VjpFn vjp_square = unary_vjp<[](Term g, Term x, Term) { return g * (x * 2.0); }>;
constexpr VjpFn vjp_erf = unary_vjp<[](Term g, Term x, Term) {
  return g * ((-(x * x)).op("stablehlo.exponential") * (2.0 * std::numbers::inv_sqrtpi));
}>;
constexpr VjpFn vjp_erfc = unary_vjp<[](Term g, Term x, Term) {
  return g * ((-(x * x)).op("stablehlo.exponential") * (-2.0 * std::numbers::inv_sqrtpi));
}>;
constexpr VjpFn vjp_lgamma = unary_vjp<[](Term g, Term x, Term) { return g * x.op("chlo.digamma"); }>;
constexpr VjpFn vjp_sinh = unary_vjp<[](Term g, Term x, Term) { return g * x.op("chlo.cosh"); }>;
constexpr VjpFn vjp_cosh = unary_vjp<[](Term g, Term x, Term) { return g * x.op("chlo.sinh"); }>;
constexpr VjpFn vjp_asin =
    unary_vjp<[](Term g, Term x, Term) { return g * one_minus_square(x).op("stablehlo.rsqrt"); }>;
constexpr VjpFn vjp_acos =
    unary_vjp<[](Term g, Term x, Term) { return -(g * one_minus_square(x).op("stablehlo.rsqrt")); }>;
constexpr VjpFn vjp_atan = unary_vjp<[](Term g, Term x, Term) { return g / (x * x + 1.0); }>;
constexpr VjpFn vjp_asinh = unary_vjp<[](Term g, Term x, Term) { return g * (x * x + 1.0).op("stablehlo.rsqrt"); }>;
// Two roots: x^2 - 1 would cancel near 1 and overflow for large x.
constexpr VjpFn vjp_acosh = unary_vjp<[](Term g, Term x, Term) {
  return g * ((x + -1.0).op("stablehlo.rsqrt") * (x + 1.0).op("stablehlo.rsqrt"));
}>;
constexpr VjpFn vjp_atanh = unary_vjp<[](Term g, Term x, Term) { return g / one_minus_square(x); }>;

constexpr VjpFn vjp_add =
    binary_vjp<[](Term g, Term, Term, Term) { return g; }, [](Term g, Term, Term, Term) { return g; }>;
constexpr VjpFn vjp_subtract =
    binary_vjp<[](Term g, Term, Term, Term) { return g; }, [](Term g, Term, Term, Term) { return -g; }>;
// Not -g · x / y^2, because the square may overflow. Not x / y either: that is the result, which would be kept beside x,
// and x is needed anyway where y is a norm, or a sum of exponentials.
constexpr VjpFn vjp_divide = binary_vjp<[](Term g, Term, Term y, Term) { return g / y; },
                                        [](Term g, Term x, Term y, Term) { return -((g / y) * (x * (1.0 / y))); }>;
// atan2(x, y): here x is the ordinate.
constexpr VjpFn vjp_atan2 = binary_vjp<[](Term g, Term x, Term y, Term) { return g * (y / (x * x + y * y)); },
                                       [](Term g, Term x, Term y, Term) { return -(g * (x / (x * x + y * y))); }>;

void vjp_abs(VjpContext& context);
void vjp_multiply(VjpContext& context);
void vjp_remainder(VjpContext& context);
void vjp_power(VjpContext& context);
void vjp_maximum_minimum(VjpContext& context);
void vjp_select(VjpContext& context);
void vjp_clamp(VjpContext& context);
void vjp_convert(VjpContext& context);
void vjp_reduce_precision(VjpContext& context);

}  // namespace shardwise
