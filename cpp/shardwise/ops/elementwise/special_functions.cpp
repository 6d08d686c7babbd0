// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/special_functions.h"

#include <limits>

#include "shardwise/ops/build/term.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void infer_mulhi(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  if (!is_integer(op.operand(0).dtype)) {
    op.fail_dtype("operands must be integers", op.operand_types_text(), "convert them first");
  }
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

Term equal_to(Term x, double value) { return x.compare("EQ", x.splat(value)); }

void decompose_is_inf(DecomposeContext& context) {
  const Term x{&context.builder(), context.operand(0)};
  context.set_result(0, equal_to(x.op("stablehlo.abs"), kInfinity).id);
}
void decompose_is_pos_inf(DecomposeContext& context) {
  context.set_result(0, equal_to({&context.builder(), context.operand(0)}, kInfinity).id);
}
void decompose_is_neg_inf(DecomposeContext& context) {
  context.set_result(0, equal_to({&context.builder(), context.operand(0)}, -kInfinity).id);
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr Traits kElementwise{.elementwise = true};
constexpr std::string_view kUnaryFormat = "operands attr-dict `:` same-type `->` result-type";
constexpr std::string_view kBinaryFormat = "operands attr-dict `:` operand-type `->` result-type";

constexpr OpDef unary(std::string_view name, InferFn infer, std::string_view doc) {
  return propagation_only_op(name, infer, rule_like_first_result, kUnaryFormat, doc, kElementwise);
}
constexpr OpDef predicate(std::string_view name, DecomposeFn decompose, std::string_view doc) {
  return without_gradient(
      composed_op(name, infer_predicate, rule_like_first_result, decompose, kBinaryFormat, doc, kElementwise),
      "the result is a truth value");
}
constexpr OpDef binary(std::string_view name, InferFn infer, std::string_view doc) {
  return propagation_only_op(name, infer, rule_like_first_result, kBinaryFormat, doc, kElementwise);
}
constexpr OpDef kSpecialFunctionOps[] = {
    unary("chlo.bessel_i1e", infer_float<1, true>, "Modified Bessel function of order 1, scaled (CHLO bessel_i1e)."),
    unary("chlo.digamma", infer_float<1, false>, "Derivative of lgamma (CHLO digamma)."),
    unary("chlo.erf_inv", infer_float<1, false>, "Inverse error function (CHLO erf_inv)."),
    unary("chlo.lgamma", infer_float<1, false>, "log|gamma(x)| (CHLO lgamma)."),
    composed_op("chlo.tan", infer_float<1, true>, rule_like_first_result, decompose_tan, kUnaryFormat,
                "Tangent (CHLO tan).", kElementwise),
    predicate("chlo.is_inf", decompose_is_inf, "Whether infinite (CHLO is_inf)."),
    predicate("chlo.is_neg_inf", decompose_is_neg_inf, "Whether -infinity (CHLO is_neg_inf)."),
    predicate("chlo.is_pos_inf", decompose_is_pos_inf, "Whether +infinity (CHLO is_pos_inf)."),
    binary("chlo.next_after", infer_float<2, false>, "The next float towards another one (CHLO next_after)."),
    binary("chlo.polygamma", infer_float<2, false>, "Derivatives of digamma (CHLO polygamma)."),
    binary("chlo.zeta", infer_float<2, false>, "Hurwitz zeta function (CHLO zeta)."),
    binary("chlo.mulhi", infer_mulhi, "The high half of a product (CHLO mulhi)."),
};
static_assert(all_complete(kSpecialFunctionOps));

}  // namespace

std::span<const OpDef> special_function_ops() { return kSpecialFunctionOps; }

}  // namespace shardwise
