// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/elementwise/complex.h"

#include "shardwise/base/narrow_float.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_complex_only(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (!is_complex(op.operand(0).dtype)) op.fail_dtype("operands must be complex numbers", op.operand_types_text());
  results.push_back(op.operand_type(0));
}

void infer_complex(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_same_types(op);
  results.push_back(result_or_declared(op, {complex_of(op), op.operand(0).shape}));
}

void infer_part(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const DType dtype = op.operand(0).dtype;
  if (!is_complex(dtype)) expect_float(op);
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  results.push_back(result_or_declared(op, {part, op.operand(0).shape}));
}

// The conjugate of real numbers; complex ones have no kernels.
void decompose_conj(DecomposeContext& context) {
  if (!is_complex(context.op().operand_type(0).dtype)) context.set_result(0, context.operand(0));
}

// ---- rows -----------------------------------------------------------------------------------------------------------

constexpr Traits kElementwise{.elementwise = true};
constexpr std::string_view kUnaryFormat = "operands attr-dict `:` same-type `->` result-type";
constexpr std::string_view kPartFormat = "operands attr-dict `:` same-or-functional-type";

constexpr OpDef unary(std::string_view name, InferFn infer, std::string_view doc) {
  return propagation_only_op(name, infer, rule_like_first_result, kUnaryFormat, doc, kElementwise);
}
constexpr OpDef kComplexOps[] = {
    propagation_only_op("stablehlo.complex", infer_complex, rule_like_first_result,
                        "operands attr-dict `:` complex-type", "Complex numbers from their parts (StableHLO complex).",
                        kElementwise),
    propagation_only_op("stablehlo.real", infer_part, rule_like_first_result, kPartFormat,
                        "The real parts (StableHLO real).", kElementwise),
    propagation_only_op("stablehlo.imag", infer_part, rule_like_first_result, kPartFormat,
                        "The imaginary parts (StableHLO imag).", kElementwise),
    composed_op("chlo.conj", infer_float<1, true>, rule_like_first_result, decompose_conj, kUnaryFormat,
                "Complex conjugate (CHLO conj).", kElementwise),
    unary("chlo._asin_acos_kernel", infer_complex_only,
          "What complex arc sine and arc cosine share (CHLO _asin_acos_kernel)."),
};
static_assert(all_complete(kComplexOps));

}  // namespace

std::span<const OpDef> complex_ops() { return kComplexOps; }

}  // namespace shardwise
