// SPDX-License-Identifier: Apache-2.0
//
// chlo.constant and chlo.constant_like, which has the shape of its operand.
//
//   %1 = "chlo.constant_like"(%0) <{value = 1.0 : f32}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
#include <optional>
#include <variant>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/create/create.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

void infer_constant_like(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  // The value is a number of any kind, which `number` converts to the dtype of the result.
  if (op.attrs().find("value") == nullptr) op.fail_shape("must have the attribute 'value'");
  const TensorType& result = op.declared_result();
  if (result.shape != op.operand(0).shape) {
    op.fail_shape("the result must have the operand's shape", str(op.operand(0).text(), " -> ", result.text()));
  }
  results.push_back(op.declared()[0]);
}

void decompose_constant(DecomposeContext& context) {
  context.set_result(0, build_constant(context.builder(), context.op().attrs().get<DenseAttr>("value").data));
}

std::optional<Scalar> number(const Attribute& value, DType dtype) {
  if (const auto* real = std::get_if<FloatAttr>(&value.base())) return Scalar::of_float(dtype, real->value);
  if (const auto* truth = std::get_if<bool>(&value.base())) return Scalar::of_int(dtype, *truth ? 1 : 0);
  const auto* integer = std::get_if<IntAttr>(&value.base());
  if (integer == nullptr) return std::nullopt;
  // An IntAttr holds the bits of an unsigned number in an int64.
  if (is_unsigned_integer(dtype)) return Scalar::of_uint(dtype, static_cast<uint64_t>(integer->value));
  return Scalar::of_int(dtype, integer->value);
}

void decompose_constant_like(DecomposeContext& context) {
  const TensorType& result = context.op().result_type();
  const std::optional<Scalar> value = number(*context.op().attrs().find("value"), result.dtype);
  // Any other attribute has no decomposition, and the op is then refused by its name.
  if (value) context.set_result(0, build_splat(context.builder(), result.shape, *value));
}

constexpr std::string_view kReadsShapeAlone = "it depends on no element of an operand";

constexpr OpDef kChloConstantOps[] = {
    without_gradient(composed_op("chlo.constant", infer_constant, no_rule, decompose_constant, "attr-dict $value",
                                 "A tensor of given elements (CHLO constant).", {.constant_like = true}),
                     kReadsShapeAlone),
    without_gradient(
        composed_op("chlo.constant_like", infer_constant_like, rule_like_first_result, decompose_constant_like, {},
                    "A constant of the operand's shape (CHLO constant_like).", {.elementwise = true}),
        kReadsShapeAlone),
};
static_assert(all_complete(kChloConstantOps));

}  // namespace

std::span<const OpDef> chlo_constant_ops() { return kChloConstantOps; }

}  // namespace shardwise
