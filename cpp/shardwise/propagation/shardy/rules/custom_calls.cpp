// SPDX-License-Identifier: Apache-2.0
//
// Targets of custom calls that Shardy knows. It gives factorizations and top-k pass-through factors where they mix a
// dim; here these dims need replication.
//
//   %1:2 = stablehlo.custom_call @Eigh(%0) : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4xf32>)
//   ([i, j, k])->([i, j, k], [i, k]) {i=2, j=4, k=4} need_replication={j, k}
#include <algorithm>
#include <string>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/ops/shared/custom_call_def.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

constexpr std::string_view kCombine = "X64Combine";

ShardingRule rule_pointwise(const OpView& op, RuleMode) {
  return op.result_count() == 0 ? ShardingRule{} : RuleBuilder(op).pointwise().build();
}

bool same_shapes(const OpView& op, std::initializer_list<size_t> operands, std::initializer_list<size_t> results) {
  const Dims& shape = op.operand_type(0).shape;
  const auto equal_operand = [&](size_t i) { return i < op.operand_count() && op.operand_type(i).shape == shape; };
  const auto equal_result = [&](size_t i) { return i < op.result_count() && op.result_type(i).shape == shape; };
  return std::all_of(operands.begin(), operands.end(), equal_operand) &&
         std::all_of(results.begin(), results.end(), equal_result);
}

// The last two dims of the first tensor, and of tensors of the same shape, are unsharded. Rest describes the last dim
// of tensors with one dim less.
enum class Rest : uint8_t { kNone, kLastDim, kOwn };

// Batch dims pass through; the two matrix dims are mixed. A tensor with one dim less has the last matrix dim
// (eigenvalues), or a dim of its own (the scales of Householder vectors).
ShardingRule rule_matrices(const OpView& op, Rest rest) {
  if (op.operand_count() == 0 || op.result_count() == 0 || op.operand_type(0).ndim() < 2) return {};
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  const size_t batch = shape.size() - 2;
  const auto type_of = [&](size_t t) -> const TensorType& {
    return t < op.operand_count() ? op.operand_type(t) : op.result_type(t - op.operand_count());
  };
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const FactorId factor = dim < batch ? rule.factor(shape[dim]) : rule.need_replication(shape[dim]);
    for (size_t t = 0; t < rule.tensor_count(); ++t) {
      const Dims& other = type_of(t).shape;
      const bool matrix = other.size() == shape.size() && other[dim] == shape[dim];
      const bool vector = other.size() + 1 == shape.size();
      if (matrix || (vector && dim < batch)) rule.map(t, dim, factor);
      if (vector && dim + 1 == shape.size() && rest == Rest::kLastDim) rule.map(t, batch, factor);
    }
  }
  for (size_t t = 0; t < rule.tensor_count() && rest == Rest::kOwn; ++t) {
    const Dims& other = type_of(t).shape;
    if (other.size() + 1 == shape.size()) rule.map(t, batch, rule.need_replication(other.back()));
  }
  return rule.build();
}

ShardingRule rule_eigh(const OpView& op, RuleMode) { return rule_matrices(op, Rest::kLastDim); }
ShardingRule rule_householder(const OpView& op, RuleMode) { return rule_matrices(op, Rest::kOwn); }

// Finds the k largest elements of each row, so rows pass through.
ShardingRule rule_top_k(const OpView& op, RuleMode) {
  if (op.operand_count() != 1 || op.result_count() == 0) return {};
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  if (from.size() != to.size()) return {};
  RuleBuilder rule(op);
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const FactorId factor = from[dim] == to[dim] ? rule.factor(from[dim]) : rule.need_replication(from[dim], true);
    for (size_t t = 0; t < rule.tensor_count(); ++t) rule.map(t, dim, factor);
  }
  return rule.build();
}

// Operands are values and indices, then init scalars. The results are smaller along one dim.
ShardingRule rule_approx_top_k(const OpView& op, RuleMode) {
  if (op.operand_count() < 2 || !same_shapes(op, {0, 1}, {}) || op.result_count() != 2) return {};
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  if (from.size() != to.size() || op.result_type(1).shape != to) return {};
  RuleBuilder rule(op);
  const size_t results = op.operand_count();
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const bool equal = from[dim] == to[dim];
    const FactorId factor = equal ? rule.factor(from[dim]) : rule.need_replication(from[dim]);
    const FactorId kept = equal ? factor : rule.need_replication(to[dim], true);
    for (size_t t : {size_t{0}, size_t{1}}) rule.map(t, dim, factor).map(results + t, dim, kept);
  }
  return rule.build();
}

// The state of a random generator is replicated.
ShardingRule rule_combine(const OpView& op, RuleMode mode) {
  if (!mode.neighbors || op.result_count() == 0) return rule_pointwise(op, mode);
  return RuleBuilder(op).pointwise(FactorKind::kNeedReplication, true).build();
}

struct Target {
  std::string_view name;
  ShardingRule (*rule)(const OpView& op, RuleMode mode);
  Precedence precedence = Precedence::kInTurn;
};

constexpr Target kTargets[] = {
    {"mhlo.erf", rule_pointwise},
    {"MoveToDevice", rule_pointwise, Precedence::kEarly},
    {"MoveToHost", rule_pointwise, Precedence::kEarly},
    {kCombine, rule_combine},
    {"X64SplitHigh", rule_pointwise},
    {"X64SplitLow", rule_pointwise},
    {"xla.megascale.provide_metadata", rule_pointwise},
    {"_SPMDInternalOp_MultiPad", rule_pointwise},
    {"_SPMDInternalOp_RotateRight", rule_pointwise},
    {"_SPMDInternalOp_MultiRotate", rule_pointwise},
    {"_SPMDInternalOp_MultiSlice", rule_pointwise},
    {"_SPMDInternalOp_Wrap", rule_pointwise},
    {"Cholesky", rule_replicated_matrices},
    {"CompactWyHelper", rule_replicated_matrices},
    {"InvertDiagBlocksLowerTriangular", rule_replicated_matrices},
    {"InvertDiagBlocksUpperTriangular", rule_replicated_matrices},
    {"Eigh", rule_eigh},
    {"Qr", rule_householder},
    {"QrDecompositionBlock", rule_householder},
    {"ProductOfElementaryHouseholderReflectors", rule_householder},
    {"mhlo.topk", rule_top_k},
    {"ApproxTopK", rule_approx_top_k},
    {"PartialReduce", rule_approx_top_k},
};

const Target* target_of(const OpView& op) {
  const auto* found = std::ranges::find(kTargets, custom_call_target(op), &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

ShardingRule rule_custom_call(const OpView& op, RuleMode mode) {
  if (const Target* target = target_of(op)) return target->rule(op, mode);
  if (op.result_count() == 0) return {};
  // Shardy cannot know the targets that users define, and shardwise's own; the others have the same rule there.
  const CustomCallPtr call = find_custom_call(custom_call_target(op));
  return call == nullptr || !call->propagates || !call->rule ? ShardingRule{} : call->rule(op);
}

// A call that only moves a value to another memory propagates as early as an identity.
Precedence precedence_of_custom_call(const OpView& op) {
  const Target* target = target_of(op);
  return target == nullptr ? Precedence::kInTurn : target->precedence;
}

bool combines_random_state(const OpView& op, Neighbors& neighbors) {
  static const OpDef& random_bits = get_op("stablehlo.rng_bit_generator");
  return custom_call_target(op) == kCombine && op.result_count() == 1 && neighbors.has_user(op, random_bits);
}

constexpr ShardyOp kCustomCallOps[] = {
    {.op = "stablehlo.custom_call",
     .rule = rule_custom_call,
     .looks_around = combines_random_state,
     .precedence_of = precedence_of_custom_call},
};

}  // namespace

ShardingRule rule_replicated_matrices(const OpView& op, RuleMode) { return rule_matrices(op, Rest::kNone); }

std::span<const ShardyOp> shardy_custom_call_ops() { return kCustomCallOps; }

}  // namespace shardwise
