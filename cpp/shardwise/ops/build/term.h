// SPDX-License-Identifier: Apache-2.0
//
// A value with operators, so that derivatives and decompositions read as formulas. Numbers become splats of the value's
// type.
//
//   const Term x{&builder, value};
//   ((x * x + 1.0).op("stablehlo.rsqrt")).id          multiply, constant, add, rsqrt
#pragma once

#include <string_view>

#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"

namespace shardwise {

struct Term {
  Builder* builder;
  ValueId id;

  Term op(std::string_view name) const { return {builder, builder->create(name, {id})}; }
  Term op(std::string_view name, Term other) const { return {builder, builder->create(name, {id, other.id})}; }
  const TensorType& type() const { return builder->module().type(id); }
  Term splat(double value) const {
    return {builder, build_splat(*builder, type().shape, Scalar::of_float(type().dtype, value))};
  }
  Term compare(std::string_view direction, Term other) const {
    return {builder, build_compare(*builder, direction, id, other.id)};
  }
  Term select(Term if_true, Term if_false) const {
    return {builder, builder->create("stablehlo.select", {id, if_true.id, if_false.id})};
  }
};
inline Term operator+(Term a, Term b) { return a.op("stablehlo.add", b); }
inline Term operator-(Term a, Term b) { return a.op("stablehlo.subtract", b); }
inline Term operator*(Term a, Term b) { return a.op("stablehlo.multiply", b); }
inline Term operator/(Term a, Term b) { return a.op("stablehlo.divide", b); }
inline Term operator-(Term a) { return a.op("stablehlo.negate"); }
inline Term operator+(Term a, double b) { return a + a.splat(b); }
inline Term operator*(Term a, double b) { return a * a.splat(b); }
inline Term operator-(double a, Term b) { return b.splat(a) - b; }
inline Term operator/(double a, Term b) { return b.splat(a) / b; }

}  // namespace shardwise
