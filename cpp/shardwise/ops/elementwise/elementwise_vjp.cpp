// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/elementwise_vjp.h"

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The derivative at a complex number is the conjugate of its direction, and 0 at zero, as in JAX.
Term complex_abs_cotangent(Term g, Term x, Term r) {
  const Term scale = g / r.compare("EQ", r.splat(0.0)).select(r.splat(1.0), r);
  return (scale * x.op("stablehlo.real")).op("stablehlo.complex", -(scale * x.op("stablehlo.imag")));
}
// 1 at both zeros, as in JAX.
Term abs_cotangent(Term g, Term x, Term) { return x.compare("GE", x.splat(0.0)).select(g, -g); }

// Gradients begin with ones, and a product by them would be one more op.
Term times_cotangent(Term g, Term factor) {
  const std::optional<Scalar> splat = splat_value(g.builder->module(), g.id);
  return splat && *splat == scalar_of(splat->dtype, 1) ? factor : g * factor;
}

Term share_of_extremum(Term g, Term own, Term other, Term r) {
  // At a tie both operands equal the result, and each gets half, as in JAX.
  const Term half = other.compare("EQ", r).select(g.splat(0.5), g.splat(1.0));
  return g * own.compare("EQ", r).select(half, g.splat(0.0));
}

// x - trunc(x / y) * y
Term divisor_cotangent(Term g, Term x, Term y, Term) {
  const Term quotient = x / y;
  const Term whole = quotient.op("stablehlo.abs").op("stablehlo.floor");
  return -(g * (quotient.op("stablehlo.sign") * whole));
}

Term base_cotangent(Term g, Term x, Term y, Term) {
  // x^0 is constant, but its formula gives 0 * inf = NaN at x = 0.
  const Term constant = y.compare("EQ", y.splat(0.0));
  const Term slope = y * x.op("stablehlo.power", constant.select(y.splat(1.0), y + -1.0));
  return g * constant.select(y.splat(0.0), slope);
}

Term exponent_cotangent(Term g, Term x, Term, Term r) {
  // At x = 0, log(0) would turn a zero result into NaN.
  const Term guarded = x.compare("EQ", x.splat(0.0)).select(x.splat(1.0), x);
  return g * (guarded.op("stablehlo.log") * r);
}

}  // namespace

void vjp_abs(VjpContext& context) {
  if (is_complex(context.op().operand_type(0).dtype)) return unary_vjp<complex_abs_cotangent>(context);
  unary_vjp<abs_cotangent>(context);
}
void vjp_multiply(VjpContext& context) {
  binary_vjp<[](Term g, Term, Term y, Term) { return times_cotangent(g, y); },
             [](Term g, Term x, Term, Term) { return times_cotangent(g, x); }>(context);
}
void vjp_remainder(VjpContext& context) {
  binary_vjp<[](Term g, Term, Term, Term) { return g; }, divisor_cotangent>(context);
}
void vjp_power(VjpContext& context) { binary_vjp<base_cotangent, exponent_cotangent>(context); }
void vjp_maximum_minimum(VjpContext& context) {
  binary_vjp<share_of_extremum, [](Term g, Term x, Term y, Term r) { return share_of_extremum(g, y, x, r); }>(context);
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
