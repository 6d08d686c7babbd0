// SPDX-License-Identifier: Apache-2.0
//
// CHLO's special functions and the few elementwise ops of real numbers that have no kernel: other ops make them up.
//
//   %1 = chlo.digamma %0 : tensor<4xf32> -> tensor<4xf32>                                     ([i])->([i]) {i=4}
#include <cmath>
#include <limits>
#include <optional>

#include "shardwise/base/error.h"
#include "shardwise/base/float_bits.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/elementwise/elementwise_rows.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/elementwise/special_decompositions.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/refusals.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void infer_mulhi(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_dtype(op, is_integer(op.operand(0).dtype), "operands must be integers", "convert them first");
  expect_same_types(op);
  results.push_back(op.operand_type(0));
}

void infer_predicate(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_float(op);
  results.push_back(result_or_declared(op, {DType::kBool, op.operand(0).shape}));
}

// ---- decompositions ------------------------------------------------------------------------------------------------

void decompose_tan(DecomposeContext& context) {
  context.set_result(0, context.builder().create("stablehlo.tan", {context.operand(0)}));
}

// Nothing equals an infinity that the dtype lacks.
Term equal_to(Term x, double value) {
  if (Scalar::of_float(x.type().dtype, value).real != value) {
    return {x.builder, build_splat(*x.builder, x.type().shape, Scalar::of_int(DType::kBool, 0))};
  }
  return x.compare("EQ", x.splat(value));
}

void decompose_is_inf(DecomposeContext& context) {
  const Term x{&context.builder(), context.operand(0)};
  context.set_result(0, equal_to(x.op("stablehlo.abs"), kInf).id);
}
void decompose_is_pos_inf(DecomposeContext& context) {
  context.set_result(0, equal_to({&context.builder(), context.operand(0)}, kInf).id);
}
void decompose_is_neg_inf(DecomposeContext& context) {
  context.set_result(0, equal_to({&context.builder(), context.operand(0)}, -kInf).id);
}

// The unsigned integers with as many bits as a float; no integer has 6.
std::optional<DType> bits_of(DType dtype) {
  switch (bit_width(dtype)) {
    case 4: return DType::kU4;
    case 8: return DType::kU8;
    case 16: return DType::kU16;
    case 32: return DType::kU32;
    case 64: return DType::kU64;
    default: return std::nullopt;
  }
}

void verify_next_after(const OpView& op) {
  if (bits_of(op.result_type().dtype)) return;
  fail<UnsupportedError>(op.name(), "the operands must have 4, 8, 16, 32 or 64 bits to run it", op.result_type().text(),
                         refusals::kNextAfter.way_out);
}

// The bits of a float other than 0 are one more or one less: one more where it moves away from 0.
void decompose_next_after(DecomposeContext& context) {
  Builder& builder = context.builder();
  const TensorType type = context.op().result_type();
  const std::optional<DType> unsigned_dtype = bits_of(type.dtype);
  if (!unsigned_dtype) return;  // verify_next_after refuses these
  const auto as_bits = [&](Term x) {
    const TypeId bits = builder.context().tensor(*unsigned_dtype, type.shape);
    return Term{&builder, builder.create("stablehlo.bitcast_convert", {x.id}, {}, {bits})};
  };
  const auto number = [&](uint64_t value) {
    return Term{&builder, build_splat(builder, type.shape, Scalar::of_uint(*unsigned_dtype, value))};
  };
  const auto as_float = [&](Term x) {
    const TypeId same = builder.context().tensor(type.dtype, type.shape);
    return Term{&builder, builder.create("stablehlo.bitcast_convert", {x.id}, {}, {same})};
  };
  const Term x{&builder, context.operand(0)}, y{&builder, context.operand(1)};
  const Term bits = as_bits(x), one = number(1);
  // As in C: equal operands give the second one, so that (+0, -0) gives -0; a NaN operand gives NaN.
  const auto set = [&](Term next) {
    const Term is_nan = x.compare("NE", x).op("stablehlo.or", y.compare("NE", y));
    context.set_result(0, is_nan.select(x + y, x.compare("EQ", y).select(y, next)).id);
  };
  if (type.dtype == DType::kF8E8M0FNU) {  // powers of two, without a sign and without 0: bits ascend as numbers do
    return set(as_float(x.compare("LT", y).select(bits + one, bits - one)));
  }
  const Term zero = x.splat(0.0), sign = number(uint64_t{1} << (bit_width(type.dtype) - 1));
  const Term away = x.compare("GT", zero).select(x.compare("LT", y), x.compare("GT", y));
  // From 0 the next float is the smallest one with the sign of y.
  const Term smallest = as_bits(y).op("stablehlo.and", sign).op("stablehlo.or", one);
  const Term moved = x.compare("EQ", zero).select(smallest, away.select(bits + one, bits - one));
  // In a format without a negative zero these bits are NaN.
  const bool has_minus_zero = !std::isnan(float_of_bits(type.dtype, uint64_t{1} << (bit_width(type.dtype) - 1)));
  const Term whole = has_minus_zero ? moved : moved.compare("EQ", sign).select(number(0), moved);
  set(as_float(whole));
}

// The product of halves u1 u0 and v1 v0; from Warren, "Hacker's Delight", section 8-2.
Term high_of_64_bits(Term u, Term v, std::string_view shift_right) {
  const DType dtype = u.type().dtype;
  const auto number = [&](int64_t value) {
    return Term{u.builder, build_splat(*u.builder, u.type().shape, scalar_of(dtype, value))};
  };
  const Term half = number(32), mask = number(0xFFFFFFFF);
  // The high halves of signed operands have the sign, the low halves are unsigned.
  const auto low = [&](Term x) { return x.op("stablehlo.and", mask); };
  const auto high = [&](Term x) { return x.op(shift_right, half); };
  const Term u0 = low(u), u1 = high(u), v0 = low(v), v1 = high(v);
  const Term middle = u1 * v0 + (u0 * v0).op("stablehlo.shift_right_logical", half);
  return u1 * v1 + high(middle) + high(u0 * v1 + low(middle));
}

void decompose_mulhi(DecomposeContext& context) {
  Builder& builder = context.builder();
  const DType dtype = context.op().result_type().dtype;
  const DType wide = is_signed_integer(dtype) ? DType::kI64 : DType::kU64;
  const std::string_view shift =
      is_signed_integer(dtype) ? "stablehlo.shift_right_arithmetic" : "stablehlo.shift_right_logical";
  const Term u{&builder, build_convert(builder, context.operand(0), wide)};
  const Term v{&builder, build_convert(builder, context.operand(1), wide)};
  if (dtype == wide) return context.set_result(0, high_of_64_bits(u, v, shift).id);
  // A product of two integers of up to 32 bits fits in 64 bits.
  const Term bits{&builder, build_splat(builder, u.type().shape, scalar_of(wide, bit_width(dtype)))};
  context.set_result(0, build_convert(builder, (u * v).op(shift, bits).id, dtype));
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr std::string_view kBinaryFormat = "operands attr-dict `:` operand-type `->` result-type";

constexpr OpDef unary(std::string_view name, InferFn infer, DecomposeFn decompose, VjpFn vjp, std::string_view doc,
                      std::string_view format = kUnaryFormat) {
  OpDef def = composed_op(name, infer, rule_like_first_result, decompose, format, doc, kElementwise);
  def.vjp = vjp;
  return def;
}
constexpr OpDef predicate(std::string_view name, DecomposeFn decompose, std::string_view doc) {
  return without_gradient(unary(name, infer_predicate, decompose, nullptr, doc, kBinaryFormat), kTruth);
}
constexpr OpDef binary(std::string_view name, InferFn infer, DecomposeFn decompose, VjpFn vjp, std::string_view doc) {
  return unary(name, infer, decompose, vjp, doc, kBinaryFormat);
}

constexpr OpDef kSpecialFunctionOps[] = {
    runnable_if(unary("chlo.bessel_i1e", infer_float<1, true>, decompose_bessel_i1e, nullptr,
                      "Modified Bessel function of order 1, scaled (CHLO bessel_i1e)."),
                verify_real),
    unary("chlo.digamma", infer_float<1, false>, decompose_digamma, vjp_digamma,
          "Derivative of lgamma (CHLO digamma)."),
    unary("chlo.erf_inv", infer_float<1, false>, decompose_erf_inv, vjp_erf_inv,
          "Inverse error function (CHLO erf_inv)."),
    unary("chlo.tan", infer_float<1, true>, decompose_tan, nullptr, "Tangent (CHLO tan)."),
    predicate("chlo.is_inf", decompose_is_inf, "Whether infinite (CHLO is_inf)."),
    predicate("chlo.is_neg_inf", decompose_is_neg_inf, "Whether -infinity (CHLO is_neg_inf)."),
    predicate("chlo.is_pos_inf", decompose_is_pos_inf, "Whether +infinity (CHLO is_pos_inf)."),
    without_gradient(runnable_if(binary("chlo.next_after", infer_float<2, false>, decompose_next_after, nullptr,
                                        "The next float towards another one (CHLO next_after)."),
                                 verify_next_after),
                     "it steps from one float to the next"),
    binary("chlo.polygamma", infer_float<2, false>, decompose_polygamma, vjp_polygamma,
           "Derivatives of digamma (CHLO polygamma)."),
    binary("chlo.zeta", infer_float<2, false>, decompose_zeta, nullptr, "Hurwitz zeta function (CHLO zeta)."),
    without_gradient(
        binary("chlo.mulhi", infer_mulhi, decompose_mulhi, nullptr, "The high half of a product (CHLO mulhi)."),
        "an operation on bits has no derivative"),
};
static_assert(all_complete(kSpecialFunctionOps));

}  // namespace

std::span<const OpDef> special_function_ops() { return kSpecialFunctionOps; }

}  // namespace shardwise
