// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/custom_call.h"

#include <algorithm>
#include <array>

#include "shardwise/base/text.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

void infer_custom_call(const InferContext& op, std::vector<TypeId>& results) {
  if (op.attr<std::string>("call_target_name").empty()) op.fail_shape("call_target_name must not be empty");
  infer_declared(op, results);
}

// ---- rules of targets ----------------------------------------------------------------------------------------------

ShardingRule rule_pointwise(const OpView& op) {
  return op.result_count() == 0 ? ShardingRule{} : rule_like_first_result(op);
}

bool same_shapes(const OpView& op, std::initializer_list<size_t> operands, std::initializer_list<size_t> results) {
  const Dims& shape = op.operand_type(0).shape;
  const auto equal_operand = [&](size_t i) { return i < op.operand_count() && op.operand_type(i).shape == shape; };
  const auto equal_result = [&](size_t i) { return i < op.result_count() && op.result_type(i).shape == shape; };
  return std::all_of(operands.begin(), operands.end(), equal_operand) &&
         std::all_of(results.begin(), results.end(), equal_result);
}

// The last two dims of the first tensor, and of tensors of the same shape, are whole. Rest describes the last dim of
// tensors with one dim less.
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

ShardingRule rule_triangle(const OpView& op) { return rule_matrices(op, Rest::kNone); }
ShardingRule rule_eigh(const OpView& op) { return rule_matrices(op, Rest::kLastDim); }
ShardingRule rule_householder(const OpView& op) { return rule_matrices(op, Rest::kOwn); }

// Finds the k largest elements of each row, so rows pass through.
ShardingRule rule_top_k(const OpView& op) {
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
ShardingRule rule_approx_top_k(const OpView& op) {
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

// ---- the table -----------------------------------------------------------------------------------------------------

struct Target {
  std::string_view name;
  RuleFn rule;
};

constexpr Target kTargets[] = {
    {"annotate_device_placement", rule_pointwise},
    {"InspectSharding", rule_pointwise},
    {"LayoutConstraint", rule_pointwise},
    {"mhlo.erf", rule_pointwise},
    {"MoveToDevice", rule_pointwise},
    {"MoveToHost", rule_pointwise},
    {"X64Combine", rule_pointwise},
    {"X64SplitHigh", rule_pointwise},
    {"X64SplitLow", rule_pointwise},
    {"xla.megascale.provide_metadata", rule_pointwise},
    {"_SPMDInternalOp_MultiPad", rule_pointwise},
    {"_SPMDInternalOp_RotateRight", rule_pointwise},
    {"_SPMDInternalOp_MultiRotate", rule_pointwise},
    {"_SPMDInternalOp_MultiSlice", rule_pointwise},
    {"_SPMDInternalOp_Wrap", rule_pointwise},
    {"Cholesky", rule_triangle},
    {"CompactWyHelper", rule_triangle},
    {"InvertDiagBlocksLowerTriangular", rule_triangle},
    {"InvertDiagBlocksUpperTriangular", rule_triangle},
    {"Eigh", rule_eigh},
    {"Qr", rule_householder},
    {"QrDecompositionBlock", rule_householder},
    {"ProductOfElementaryHouseholderReflectors", rule_householder},
    {"mhlo.topk", rule_top_k},
    {"ApproxTopK", rule_approx_top_k},
    {"PartialReduce", rule_approx_top_k},
};

const std::string& target_of(const OpView& op) { return op.attrs().get<std::string>("call_target_name"); }

ShardingRule rule_custom_call(const OpView& op) {
  const std::string& name = target_of(op);
  const auto* target =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const Target& known) { return known.name == name; });
  return target == std::end(kTargets) ? ShardingRule{} : target->rule(op);
}

// A call that only moves a value to another memory propagates as early as an identity.
Precedence precedence_of_custom_call(const OpView& op) {
  const std::string& name = target_of(op);
  return name == "MoveToDevice" || name == "MoveToHost" ? Precedence::kEarly : Precedence::kInTurn;
}

bool effect_of_custom_call(const OpView& op) {
  const bool* declared = op.attrs().find<bool>("has_side_effect");
  return declared != nullptr && *declared;
}

constexpr OpDef custom_call() {
  OpDef def = propagation_only_op("stablehlo.custom_call", infer_custom_call, rule_custom_call,
                                  "custom<symbol>($call_target_name) `(` operands `)` attr-dict `:` functional-type",
                                  "A call of what its target knows (StableHLO custom_call).",
                                  {.side_effect = true, .tokens = true});
  def.precedence = precedence_of_custom_call;
  def.effect = effect_of_custom_call;
  return def;
}

constexpr OpDef kCustomCallOps[] = {custom_call()};
static_assert(all_complete(kCustomCallOps));

}  // namespace

std::span<const OpDef> custom_call_ops() { return kCustomCallOps; }

}  // namespace shardwise
