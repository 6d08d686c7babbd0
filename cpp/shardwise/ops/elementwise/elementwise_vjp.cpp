// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise_vjp.h"

#include <numbers>
#include <string>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

bool is_differentiable(const VjpContext& context, size_t operand) {
  return context.needs(operand) && is_inexact(context.op().operand_type(operand).dtype);
}

// formula(g, x, r): cotangent, operand and result of a unary op.
template <class F>
void unary(VjpContext& context, F formula) {
  if (!is_differentiable(context, 0)) return;
  Builder* builder = &context.builder();
  const Term g{builder, context.cotangent()};
  context.set(0, formula(g, Term{builder, context.operand(0)}, Term{builder, context.result()}).id);
}

// lhs(g, x, y, r) and rhs(g, x, y, r): the cotangents of the two operands.
template <class L, class R>
void binary(VjpContext& context, L lhs, R rhs) {
  Builder* builder = &context.builder();
  const Term x{builder, context.operand(0)}, y{builder, context.operand(1)}, r{builder, context.result()};
  if (is_differentiable(context, 0)) context.set(0, lhs(Term{builder, context.cotangent()}, x, y, r).id);
  if (is_differentiable(context, 1)) context.set(1, rhs(Term{builder, context.cotangent()}, x, y, r).id);
}

Term one_minus_square(Term x) { return (1.0 - x) * (x + 1.0); }  // precise near |x| = 1

}  // namespace

// The derivative at a complex number is the conjugate of its direction, and 0 at zero, as in JAX.
void vjp_complex_abs(VjpContext& context) {
  unary(context, [](Term g, Term x, Term r) {
    const Term scale = g / r.compare("EQ", r.splat(0.0)).select(r.splat(1.0), r);
    return (scale * x.op("stablehlo.real")).op("stablehlo.complex", -(scale * x.op("stablehlo.imag")));
  });
}
// 1 at both zeros, as in JAX.
void vjp_abs(VjpContext& context) {
  if (is_complex(context.op().operand_type(0).dtype)) return vjp_complex_abs(context);
  unary(context, [](Term g, Term x, Term) { return x.compare("GE", x.splat(0.0)).select(g, -g); });
}
void vjp_negate(VjpContext& context) {
  unary(context, [](Term g, Term, Term) { return -g; });
}
void vjp_sine(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * x.op("stablehlo.cosine"); });
}
void vjp_cosine(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return -(g * x.op("stablehlo.sine")); });
}
// Formulas use the result where they can, so that no function is computed twice: the slope of tan is 1 + r^2.
void vjp_tan(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * (r * r + 1.0); });
}
void vjp_tanh(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * one_minus_square(r); });
}
void vjp_exponential(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * r; });
}
void vjp_exponential_minus_one(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * (r + 1.0); });
}
void vjp_log(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g / x; });
}
void vjp_log_plus_one(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g / (x + 1.0); });
}
void vjp_logistic(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * (r * (1.0 - r)); });
}
void vjp_sqrt(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g * (0.5 / r); });
}
void vjp_rsqrt(VjpContext& context) {
  unary(context, [](Term g, Term x, Term r) { return g * ((r / x) * -0.5); });
}
void vjp_cbrt(VjpContext& context) {
  unary(context, [](Term g, Term, Term r) { return g / (r * r * 3.0); });
}
void vjp_square(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * (x * 2.0); });
}
void vjp_erf(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) {
    return g * ((-(x * x)).op("stablehlo.exponential") * (2.0 * std::numbers::inv_sqrtpi));
  });
}
void vjp_erfc(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) {
    return g * ((-(x * x)).op("stablehlo.exponential") * (-2.0 * std::numbers::inv_sqrtpi));
  });
}
void vjp_lgamma(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * x.op("chlo.digamma"); });
}
void vjp_sinh(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * x.op("chlo.cosh"); });
}
void vjp_cosh(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * x.op("chlo.sinh"); });
}
void vjp_asin(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * one_minus_square(x).op("stablehlo.rsqrt"); });
}
void vjp_acos(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return -(g * one_minus_square(x).op("stablehlo.rsqrt")); });
}
void vjp_atan(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g / (x * x + 1.0); });
}
void vjp_asinh(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g * (x * x + 1.0).op("stablehlo.rsqrt"); });
}
// Two roots: x^2 - 1 would cancel near 1 and overflow for large x.
void vjp_acosh(VjpContext& context) {
  unary(context,
        [](Term g, Term x, Term) { return g * ((x + -1.0).op("stablehlo.rsqrt") * (x + 1.0).op("stablehlo.rsqrt")); });
}
void vjp_atanh(VjpContext& context) {
  unary(context, [](Term g, Term x, Term) { return g / one_minus_square(x); });
}

void vjp_add(VjpContext& context) {
  const auto same = [](Term g, Term, Term, Term) { return g; };
  binary(context, same, same);
}
void vjp_subtract(VjpContext& context) {
  binary(context, [](Term g, Term, Term, Term) { return g; }, [](Term g, Term, Term, Term) { return -g; });
}
void vjp_multiply(VjpContext& context) {
  // Gradients begin with ones, and a product by them would be one more op.
  const auto times = [](Term g, Term factor) {
    const std::optional<Scalar> splat = splat_value(g.builder->module(), g.id);
    return splat && *splat == scalar_of(splat->dtype, 1) ? factor : g * factor;
  };
  binary(
      context, [&](Term g, Term, Term y, Term) { return times(g, y); },
      [&](Term g, Term x, Term, Term) { return times(g, x); });
}
// -(g / y) · r instead of -g · x / y^2, because the square may overflow.
void vjp_divide(VjpContext& context) {
  binary(
      context, [](Term g, Term, Term y, Term) { return g / y; },
      [](Term g, Term, Term y, Term r) { return -((g / y) * r); });
}
// x - trunc(x / y) * y
void vjp_remainder(VjpContext& context) {
  binary(
      context, [](Term g, Term, Term, Term) { return g; },
      [](Term g, Term x, Term y, Term) {
        const Term quotient = x / y;
        const Term whole = quotient.op("stablehlo.abs").op("stablehlo.floor");
        return -(g * (quotient.op("stablehlo.sign") * whole));
      });
}
void vjp_power(VjpContext& context) {
  binary(
      context,
      [](Term g, Term x, Term y, Term) {
        // x^0 is constant, but its formula gives 0 * inf = NaN at x = 0.
        const Term constant = y.compare("EQ", y.splat(0.0));
        const Term slope = y * x.op("stablehlo.power", constant.select(y.splat(1.0), y + -1.0));
        return g * constant.select(y.splat(0.0), slope);
      },
      [](Term g, Term x, Term, Term r) {
        // At x = 0, log(0) would turn a zero result into NaN.
        const Term guarded = x.compare("EQ", x.splat(0.0)).select(x.splat(1.0), x);
        return g * (guarded.op("stablehlo.log") * r);
      });
}
// atan2(x, y): here x is the ordinate.
void vjp_atan2(VjpContext& context) {
  binary(
      context, [](Term g, Term x, Term y, Term) { return g * (y / (x * x + y * y)); },
      [](Term g, Term x, Term y, Term) { return -(g * (x / (x * x + y * y))); });
}
void vjp_maximum_minimum(VjpContext& context) {
  const auto share = [](Term g, Term own, Term other, Term r) {
    // At a tie both operands equal the result, and each gets half, as in JAX.
    const Term half = other.compare("EQ", r).select(g.splat(0.5), g.splat(1.0));
    return g * own.compare("EQ", r).select(half, g.splat(0.0));
  };
  binary(
      context, [&](Term g, Term x, Term y, Term r) { return share(g, x, y, r); },
      [&](Term g, Term x, Term y, Term r) { return share(g, y, x, r); });
}

void vjp_select(VjpContext& context) {
  Builder* builder = &context.builder();
  const Term which{builder, context.operand(0)};
  if (is_differentiable(context, 1)) {
    const Term g{builder, context.cotangent()};
    context.set(1, which.select(g, g.splat(0.0)).id);
  }
  if (is_differentiable(context, 2)) {
    const Term g{builder, context.cotangent()};
    context.set(2, which.select(g.splat(0.0), g).id);
  }
}

void vjp_clamp(VjpContext& context) {
  Builder* builder = &context.builder();
  const Term x{builder, context.operand(1)};
  const Dims& shape = x.type().shape;
  const auto bound = [&](size_t i) { return Term{builder, build_broadcast(*builder, context.operand(i), shape, {})}; };
  const auto whole = [&](size_t i) {
    return context.op().operand_type(i).shape == shape ? Term{builder, context.operand(i)} : bound(i);
  };
  const auto set_bound = [&](size_t i, Term cotangent) {  // a scalar bound sums over all elements that it replaced
    const bool scalar = context.op().operand_type(i).shape != shape;
    const Dims all = identity_dims(static_cast<int64_t>(shape.size()));
    context.set(i, scalar ? build_reduce(*builder, cotangent.id, ValueId{}, Reducer::kSum, all) : cotangent.id);
  };
  if (is_differentiable(context, 0)) {
    const Term g{builder, context.cotangent()};
    const Term low = whole(0);
    // minimum(maximum(x, min), max) is max if the bounds are reversed: then min has no part in it.
    const Term counts = low.compare("GT", x).op("stablehlo.and", low.compare("LT", whole(2)));
    set_bound(0, counts.select(g, g.splat(0.0)));
  }
  if (is_differentiable(context, 1)) {
    const Term g{builder, context.cotangent()};
    const Term inside = x.compare("GT", whole(0)).op("stablehlo.and", x.compare("LT", whole(2)));
    context.set(1, inside.select(g, g.splat(0.0)).id);
  }
  if (is_differentiable(context, 2)) {
    const Term g{builder, context.cotangent()};
    set_bound(2, whole(2).compare("LT", x).select(g, g.splat(0.0)));
  }
}

void vjp_convert(VjpContext& context) {
  const OpView op = context.op();
  // Integers have no cotangent. The cotangent of a real number is the real part.
  if (!is_differentiable(context, 0) || !is_inexact(op.result_type().dtype)) return;
  context.set(0, build_convert(context.builder(), context.cotangent(), op.operand_type(0).dtype));
}

// The rounding counts as the identity; the cotangent is rounded in the same way, as in JAX.
void vjp_reduce_precision(VjpContext& context) {
  if (!is_differentiable(context, 0)) return;
  context.set(0, context.builder().create(context.op().def(), {context.cotangent()}, context.op().attrs()));
}

}  // namespace shardwise
