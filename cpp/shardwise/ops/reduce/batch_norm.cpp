// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization: statistics per feature, over all other dims.
//
//   %5 = "stablehlo.batch_norm_inference"(%0, %1, %2, %3, %4) <{epsilon = …, feature_index = 1 : i64}> : …
//   ([i, j], [j], [j], [j], [j])->([i, j]) {i=4, j=8}

#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// Checks that operands [first, last) have one element per feature.
TensorType expect_features(const InferContext& op, size_t first, size_t last) {
  op.attr<FloatAttr>("epsilon");
  const TensorType& data = op.operand(0);
  expect_dtype(op, is_float(data.dtype), "operands must be floats", "convert them first");
  const int64_t feature = expect_dim(op, "feature_index", data.ndim());
  const TensorType per_feature{data.dtype, {data.shape[static_cast<size_t>(feature)]}};
  for (size_t i = first; i < last; ++i) {
    if (op.operand(i) == per_feature) continue;
    op.fail_shape(str("operand ", i, " must have one element per feature, ", per_feature.text()),
                  op.operand_types_text());
  }
  return per_feature;
}

// Operand, scale, offset, mean, variance.
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

// Operand, scale, mean, variance, and the cotangent of the normalised result.
void infer_grad(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(5);
  const TensorType per_feature = expect_features(op, 1, 4);
  expect_shape(op, op.operand(4) == op.operand(0), "the gradient must have the type of the operand");
  results.push_back(result_or_declared(op, op.operand(0), 0));
  for (size_t i = 1; i < 3; ++i) results.push_back(result_or_declared(op, per_feature, i));
}

// Statistics are computed over all dims but the feature dim, so these dims must be whole.
ShardingRule rule_by_feature(const OpView& op, FactorKind other_dims) {
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  const auto feature = static_cast<size_t>(op.attrs().get_int("feature_index"));
  // Tensor 4 is the cotangent of batch_norm_grad, but the mean that batch_norm_training returns. The shape decides.
  // An operand with one dim has that shape, too, and then both maps agree.
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

// ---- decompositions, as the StableHLO specification writes them ----------------------------------------------------

// The operands and results of a batch norm. Narrow floats are computed in float32 and rounded once.
class Features {
 public:
  explicit Features(DecomposeContext& context)
      : context_(context),
        feature_(context.op().attrs().get_int("feature_index")),
        shape_(context.op().operand_type(0).shape),
        dtype_(context.op().operand_type(0).dtype),
        wide_(computed_in(dtype_)),
        count_(static_cast<double>(element_count(sizes_at(shape_, others())))) {}

  Term operand(size_t i) const {
    return {&context_.builder(), build_convert(context_.builder(), context_.operand(i), wide_)};
  }
  void set(size_t i, Term value) const { context_.set_result(i, build_convert(context_.builder(), value.id, dtype_)); }

  double count() const { return count_; }  // of elements per feature
  Term sum(Term data) const {
    return {data.builder, build_reduce(*data.builder, data.id, {}, Reducer::kSum, others())};
  }
  Term mean(Term data) const {
    const Term total = sum(data);
    return total / total.splat(count_);
  }
  Term spread(Term per_feature) const {
    return {per_feature.builder, build_broadcast(*per_feature.builder, per_feature.id, shape_, Dims{feature_})};
  }
  Term plus_epsilon(Term variance) const { return variance + context_.op().attrs().get<FloatAttr>("epsilon").value; }
  Term deviation(Term variance) const { return plus_epsilon(variance).op("stablehlo.sqrt"); }

 private:
  Dims others() const { return other_dims(static_cast<int64_t>(shape_.size()), DimSpan(&feature_, 1)); }

  DecomposeContext& context_;
  int64_t feature_;
  Dims shape_;
  DType dtype_, wide_;
  double count_;
};

Term scaled(const Features& features, Term centered, Term variance, Term scale, Term offset) {
  const Term normal = centered / features.spread(features.deviation(variance));
  return features.spread(scale) * normal + features.spread(offset);
}

void decompose_inference(DecomposeContext& context) {
  const Features features(context);
  const Term centered = features.operand(0) - features.spread(features.operand(3));
  features.set(0, scaled(features, centered, features.operand(4), features.operand(1), features.operand(2)));
}

void decompose_training(DecomposeContext& context) {
  const Features features(context);
  const Term x = features.operand(0);
  const Term mean = features.mean(x);
  const Term centered = x - features.spread(mean);
  // The data are centered first, because mean(x^2) - mean(x)^2 would cancel for data far from 0.
  const Term variance = features.mean(centered * centered);
  features.set(0, scaled(features, centered, variance, features.operand(1), features.operand(2)));
  features.set(1, mean);
  features.set(2, variance);
}

void decompose_grad(DecomposeContext& context) {
  const Features features(context);
  const Term scale = features.operand(1), variance = features.operand(3), gradient = features.operand(4);
  const Term centered = features.operand(0) - features.spread(features.operand(2));
  const Term deviation = features.deviation(variance);
  const Term offset_gradient = features.sum(gradient);
  // The mean and the variance depend on x, too. With n elements per feature and c = x - mean, the gradient is
  //   scale / (n · deviation) · (n · g - sum(g) - c · sum(g · c) / (variance + epsilon))
  const Term along = features.spread(features.sum(gradient * centered)) * centered;
  const Term rest = gradient * features.count() - features.spread(offset_gradient) -
                    along / features.spread(features.plus_epsilon(variance));
  const Term slope = scale / deviation;
  features.set(0, features.spread(slope / slope.splat(features.count())) * rest);
  features.set(1, features.sum(gradient * (centered / features.spread(deviation))));
  features.set(2, offset_gradient);
}

constexpr OpDef kBatchNormOps[] = {
    composed_op("stablehlo.batch_norm_inference", infer_inference, rule_inference, decompose_inference, {},
                "Normalises by given means and variances (StableHLO batch_norm_inference)."),
    composed_op("stablehlo.batch_norm_training", infer_training, rule_statistics, decompose_training, {},
                "Normalises by the batch's own means and variances (StableHLO batch_norm_training)."),
    composed_op("stablehlo.batch_norm_grad", infer_grad, rule_statistics, decompose_grad, {},
                "The gradients of batch_norm_training (StableHLO batch_norm_grad)."),
};
static_assert(all_complete(kBatchNormOps));

}  // namespace

std::span<const OpDef> batch_norm_ops() { return kBatchNormOps; }

}  // namespace shardwise
