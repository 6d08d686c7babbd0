// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/ragged_dot.h"

#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

struct RaggedDims {
  Dims lhs_batching, rhs_batching, lhs_contracting, rhs_contracting, lhs_ragged, rhs_group;

  static RaggedDims of(const Attrs& attrs) {
    RaggedDims dims;
    const auto* numbers = attrs.find<StructAttr>("ragged_dot_dimension_numbers");
    if (numbers == nullptr) return dims;
    for (const auto& [name, value] : numbers->fields) {
      const auto* list = std::get_if<IntArray>(&value.base());
      if (list == nullptr) continue;
      if (name == "lhs_batching_dimensions") dims.lhs_batching = *list;
      if (name == "rhs_batching_dimensions") dims.rhs_batching = *list;
      if (name == "lhs_contracting_dimensions") dims.lhs_contracting = *list;
      if (name == "rhs_contracting_dimensions") dims.rhs_contracting = *list;
      if (name == "lhs_ragged_dimensions") dims.lhs_ragged = *list;
      if (name == "rhs_group_dimensions") dims.rhs_group = *list;
    }
    return dims;
  }
  bool contracts_ragged() const { return contains_dim(lhs_contracting, lhs_ragged[0]); }
  Dims lhs_free(int64_t ndim) const { return other_dims(ndim, lhs_batching, lhs_contracting); }
  Dims rhs_free(int64_t ndim) const {
    Dims used = rhs_batching;
    used.insert(used.end(), rhs_group.begin(), rhs_group.end());
    return other_dims(ndim, used, rhs_contracting);
  }
};

void infer_ragged_dot(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.attr<StructAttr>("ragged_dot_dimension_numbers");
  const RaggedDims dims = RaggedDims::of(op.attrs());
  const TensorType& lhs = op.operand(0);
  const TensorType& rhs = op.operand(1);
  expect_dims(op, "lhs_batching_dimensions", dims.lhs_batching, lhs.ndim());
  expect_dims(op, "rhs_batching_dimensions", dims.rhs_batching, rhs.ndim());
  expect_dims(op, "lhs_contracting_dimensions", dims.lhs_contracting, lhs.ndim());
  expect_dims(op, "rhs_contracting_dimensions", dims.rhs_contracting, rhs.ndim());
  expect_length(op, "lhs_ragged_dimensions", dims.lhs_ragged, 1);
  expect_dims(op, "lhs_ragged_dimensions", dims.lhs_ragged, lhs.ndim());
  expect_dims(op, "rhs_group_dimensions", dims.rhs_group, rhs.ndim());
  const TensorType& groups = op.operand(2);
  bool fits = dims.lhs_batching.size() == dims.rhs_batching.size() && groups.ndim() >= 1 &&
              dims.lhs_contracting.size() == dims.rhs_contracting.size() && dims.rhs_group.size() <= 1;
  const auto same = [&](const Dims& a, const Dims& b) {
    for (size_t i = 0; fits && i < a.size(); ++i) {
      fits = lhs.shape[static_cast<size_t>(a[i])] == rhs.shape[static_cast<size_t>(b[i])];
    }
  };
  same(dims.lhs_batching, dims.rhs_batching);
  same(dims.lhs_contracting, dims.rhs_contracting);
  if (!fits) op.fail_shape("batching and contracting dims must have the same sizes", op.operand_types_text());
  Dims shape;
  if (dims.contracts_ragged()) shape.push_back(groups.shape.back());
  for (int64_t dim : dims.lhs_batching) shape.push_back(lhs.shape[static_cast<size_t>(dim)]);
  for (int64_t dim : dims.lhs_free(lhs.ndim())) shape.push_back(lhs.shape[static_cast<size_t>(dim)]);
  for (int64_t dim : dims.rhs_free(rhs.ndim())) shape.push_back(rhs.shape[static_cast<size_t>(dim)]);
  results.push_back(contracted(op, std::move(shape)));
}

// As dot_general; rows of the ragged dim belong to groups by their place, so that it and the groups are whole.
ShardingRule rule_ragged_dot(const OpView& op) {
  RuleBuilder rule(op);
  const RaggedDims dims = RaggedDims::of(op.attrs());
  const TensorType& lhs = op.operand_type(0);
  const TensorType& rhs = op.operand_type(1);
  const size_t result = rule.result_tensor(0);
  const auto size = [](const TensorType& type, int64_t dim) { return type.shape[static_cast<size_t>(dim)]; };
  const auto at = [](int64_t dim) { return static_cast<size_t>(dim); };
  const int64_t ragged = dims.lhs_ragged[0];
  size_t out = dims.contracts_ragged() ? 1 : 0;
  for (size_t i = 0; i < dims.lhs_batching.size(); ++i) {
    const int64_t dim = dims.lhs_batching[i];
    const FactorId factor = dim == ragged ? rule.need_replication(size(lhs, dim)) : rule.factor(size(lhs, dim));
    rule.map(0, at(dim), factor).map(1, at(dims.rhs_batching[i]), factor).map(result, out++, factor);
  }
  for (int64_t dim : dims.lhs_free(lhs.ndim())) {
    const FactorId factor = dim == ragged ? rule.need_replication(size(lhs, dim)) : rule.factor(size(lhs, dim));
    rule.map(0, at(dim), factor).map(result, out++, factor);
  }
  for (int64_t dim : dims.rhs_free(rhs.ndim())) {
    const FactorId factor = rule.factor(size(rhs, dim));
    rule.map(1, at(dim), factor).map(result, out++, factor);
  }
  for (size_t i = 0; i < dims.lhs_contracting.size(); ++i) {
    const int64_t dim = dims.lhs_contracting[i];
    const FactorId factor =
        dim == ragged ? rule.need_replication(size(lhs, dim)) : rule.reduction(size(lhs, dim), Reducer::kSum);
    rule.map(0, at(dim), factor).map(1, at(dims.rhs_contracting[i]), factor);
  }
  // The groups: whole, and apart in each tensor.
  for (int64_t dim : dims.rhs_group) rule.map(1, at(dim), rule.need_replication(size(rhs, dim)));
  const Dims& groups = op.operand_type(2).shape;
  for (size_t dim = 0; dim < groups.size(); ++dim) rule.map(2, dim, rule.need_replication(groups[dim]));
  if (dims.contracts_ragged()) rule.map(result, 0, rule.need_replication(op.result_type().shape[0]));
  return rule.build();
}

constexpr OpDef kRaggedDotOps[] = {
    propagation_only_op("chlo.ragged_dot", infer_ragged_dot, rule_ragged_dot, {},
                        "A dot per group of rows (CHLO ragged_dot)."),
};
static_assert(all_complete(kRaggedDotOps));

}  // namespace

std::span<const OpDef> ragged_dot_ops() { return kRaggedDotOps; }

}  // namespace shardwise
