// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/create/chlo_constant.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_constant_like(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (op.attrs().find("value") == nullptr) op.fail_shape("must have the attribute 'value'");
  const TensorType& result = op.declared_result();
  if (result.shape != op.operand(0).shape) {
    op.fail_shape("the result must have the operand's shape", str(op.operand(0).text(), " -> ", result.text()));
  }
  results.push_back(op.declared()[0]);
}

void infer_constant(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const NdArray& data = op.attr<DenseAttr>("value").data;
  results.push_back(result_or_declared(op, {data.dtype(), data.shape()}));
}

constexpr OpDef kChloConstantOps[] = {
    propagation_only_op("chlo.constant", infer_constant, no_rule, "attr-dict $value",
                        "A tensor of given elements (CHLO constant).", {.constant_like = true}),
    propagation_only_op("chlo.constant_like", infer_constant_like, rule_like_first_result, {},
                        "A constant of the operand's shape (CHLO constant_like).", {.elementwise = true}),
};
static_assert(all_complete(kChloConstantOps));

}  // namespace

std::span<const OpDef> chlo_constant_ops() { return kChloConstantOps; }

}  // namespace shardwise
