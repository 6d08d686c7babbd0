// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/batch_norm.h"

#include <array>

#include "shardwise/base/text.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

// Checks that operands [first, last) have one element per feature.
TensorType expect_features(const InferContext& op, size_t first, size_t last) {
  op.attr<FloatAttr>("epsilon");
  const TensorType& data = op.operand(0);
  if (!is_float(data.dtype)) op.fail_dtype("operands must be floats", op.operand_types_text(), "convert them first");
  const int64_t feature = expect_dim(op, "feature_index", data.ndim());
  const TensorType per_feature{data.dtype, {data.shape[static_cast<size_t>(feature)]}};
  for (size_t i = first; i < last; ++i) {
    if (op.operand(i) == per_feature) continue;
    op.fail_shape(str("operand ", i, " must have one element per feature, ", per_feature.text()),
                  op.operand_types_text());
  }
  return per_feature;
}

void infer_inference(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(5);
  expect_features(op, 1, 5);
  results.push_back(op.operand_type(0));
}

void infer_training(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  const TensorType per_feature = expect_features(op, 1, 3);
  results.push_back(result_or_declared(op, op.operand(0), 0));
  for (size_t i = 1; i < 3; ++i) results.push_back(result_or_declared(op, per_feature, i));
}

void infer_grad(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(5);
  const TensorType per_feature = expect_features(op, 1, 4);
  if (op.operand(4) != op.operand(0)) {
    op.fail_shape("the gradient must have the type of the operand", op.operand_types_text());
  }
  results.push_back(result_or_declared(op, op.operand(0), 0));
  for (size_t i = 1; i < 3; ++i) results.push_back(result_or_declared(op, per_feature, i));
}

// Statistics are computed over all dims but the feature dim, so these dims must be whole.
ShardingRule rule_by_feature(const OpView& op, FactorKind other_dims) {
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  const auto feature = static_cast<size_t>(op.attrs().get_int("feature_index"));
  const auto is_data = [&](size_t tensor) {
    const TensorType& type =
        tensor < op.operand_count() ? op.operand_type(tensor) : op.result_type(tensor - op.operand_count());
    return tensor == 0 || tensor == op.operand_count() ||
           (tensor == 4 && op.result_count() == 3 && type.shape == shape);
  };
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const FactorId factor = rule.factor(shape[dim], dim == feature ? FactorKind::kPassThrough : other_dims);
    for (size_t tensor = 0; tensor < rule.tensor_count(); ++tensor) {
      if (is_data(tensor)) {
        rule.map(tensor, dim, factor);
      } else if (dim == feature) {
        rule.map(tensor, 0, factor);
      }
    }
  }
  return rule.build();
}

ShardingRule rule_inference(const OpView& op) { return rule_by_feature(op, FactorKind::kPassThrough); }
ShardingRule rule_statistics(const OpView& op) { return rule_by_feature(op, FactorKind::kNeedReplication); }

constexpr OpDef kBatchNormOps[] = {
    propagation_only_op("stablehlo.batch_norm_inference", infer_inference, rule_inference, {},
                        "Normalises by given means and variances (StableHLO batch_norm_inference)."),
    propagation_only_op("stablehlo.batch_norm_training", infer_training, rule_statistics, {},
                        "Normalises by the batch's own means and variances (StableHLO batch_norm_training)."),
    propagation_only_op("stablehlo.batch_norm_grad", infer_grad, rule_statistics, {},
                        "The gradients of batch_norm_training (StableHLO batch_norm_grad)."),
};
static_assert(all_complete(kBatchNormOps));

}  // namespace

std::span<const OpDef> batch_norm_ops() { return kBatchNormOps; }

}  // namespace shardwise
