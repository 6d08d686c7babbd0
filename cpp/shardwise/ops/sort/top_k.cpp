// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort/top_k.h"

#include "shardwise/base/text.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void infer_top_k(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const int64_t k = op.attr<IntAttr>("k").value;
  if (operand.shape.empty() || k < 0 || k > operand.shape.back()) {
    op.fail_shape("k must lie in [0, the size of the last dim]", str("k = ", k, " for ", operand.text()));
  }
  if (is_complex(operand.dtype)) op.fail_dtype("operands must be numbers that have an order", operand.text());
  Dims shape = operand.shape;
  shape.back() = k;
  results.push_back(result_or_declared(op, {operand.dtype, shape}, 0));
  results.push_back(result_or_declared(op, {DType::kI32, shape}, 1));
}

ShardingRule rule_top_k(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const bool taken = dim + 1 == shape.size();
    const FactorId factor = taken ? rule.need_replication(shape[dim], true) : rule.factor(shape[dim]);
    for (size_t tensor = 0; tensor < rule.tensor_count(); ++tensor) rule.map(tensor, dim, factor);
  }
  return rule.build();
}

constexpr OpDef kTopKOps[] = {
    propagation_only_op("chlo.top_k", infer_top_k, rule_top_k,
                        "`(` operands `,` `k` `=` $k `)` attr-dict `:` operand-type `->` `(` result-type `)`",
                        "The k largest elements of each row, and where they stand (CHLO top_k)."),
};
static_assert(all_complete(kTopKOps));

}  // namespace

std::span<const OpDef> top_k_ops() { return kTopKOps; }

}  // namespace shardwise
