// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contractions.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shardwise/base/text.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

void expect_same_dtype(const InferContext& op, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    if (op.operand(i).dtype == op.operand(0).dtype) continue;
    op.fail_dtype("operands must have the same dtype", op.operand_types_text(), "convert one of them first");
  }
}

// The result may have another dtype: sums of int8 in int32.
TypeId contracted(const InferContext& op, Dims shape) {
  const DType dtype = op.declared().empty() ? op.operand(0).dtype : op.declared_result().dtype;
  return result_or_declared(op, {dtype, std::move(shape)});
}

// ---- dot -----------------------------------------------------------------------------------------------------------

void infer_dot(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_same_dtype(op, 2);
  const Dims& lhs = op.operand(0).shape;
  const Dims& rhs = op.operand(1).shape;
  const bool fits = !lhs.empty() && lhs.size() <= 2 && !rhs.empty() && rhs.size() <= 2 && lhs.back() == rhs.front();
  if (!fits) {
    op.fail_shape(
        "operands must be vectors or matrices, and the last dim of the first as large as the first of the last",
        op.operand_types_text());
  }
  Dims shape(lhs.begin(), lhs.end() - 1);
  shape.insert(shape.end(), rhs.begin() + 1, rhs.end());
  results.push_back(contracted(op, std::move(shape)));
}

ShardingRule rule_dot(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& lhs = op.operand_type(0).shape;
  const Dims& rhs = op.operand_type(1).shape;
  const size_t result = rule.result_tensor(0);
  if (lhs.size() == 2) {
    const FactorId row = rule.factor(lhs[0]);
    rule.map(0, 0, row).map(result, 0, row);
  }
  if (rhs.size() == 2) {
    const FactorId column = rule.factor(rhs[1]);
    rule.map(1, 1, column).map(result, lhs.size() - 1, column);
  }
  const FactorId summed = rule.reduction(rhs[0], Reducer::kSum);
  rule.map(0, lhs.size() - 1, summed).map(1, 0, summed);
  return rule.build();
}

// ---- einsum --------------------------------------------------------------------------------------------------------

// The letters of each tensor, operands first. Returns none for a text that is not an einsum of letters.
std::optional<std::vector<std::string>> einsum_labels(const std::string& config) {
  std::vector<std::string> labels(1);
  bool arrow = false;
  for (size_t i = 0; i < config.size(); ++i) {
    const char c = config[i];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      labels.back() += c;
    } else if (c == ',' && !arrow) {
      labels.emplace_back();
    } else if (config.compare(i, 2, "->") == 0 && !arrow) {
      arrow = true;
      labels.emplace_back();
      ++i;
    } else if (c != ' ') {
      return std::nullopt;
    }
  }
  return arrow ? std::optional(labels) : std::nullopt;
}

void infer_einsum_of(const InferContext& op, size_t count, std::vector<TypeId>& results) {
  op.expect_operands(count);
  expect_same_dtype(op, count);
  const std::string& config = op.attr<std::string>("einsum_config");
  const auto labels = einsum_labels(config);
  bool fits = labels && labels->size() == count + 1;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; fits && i < count; ++i) {
    const Dims& shape = op.operand(i).shape;
    fits = (*labels)[i].size() == shape.size();
    for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
      fits = sizes.try_emplace((*labels)[i][dim], shape[dim]).first->second == shape[dim];
    }
  }
  Dims shape;
  for (size_t i = 0; fits && i < labels->back().size(); ++i) {
    const char label = labels->back()[i];
    fits = sizes.contains(label) && labels->back().find(label) == i;
    if (fits) shape.push_back(sizes[label]);
  }
  if (!fits) {
    op.fail_shape("einsum_config must have a letter per dim, with one size per letter",
                  str(quote(config), " for ", op.operand_types_text()), "write it such as \"ij,jk->ik\"");
  }
  results.push_back(contracted(op, std::move(shape)));
}

void infer_einsum(const InferContext& op, std::vector<TypeId>& results) { infer_einsum_of(op, 2, results); }
void infer_unary_einsum(const InferContext& op, std::vector<TypeId>& results) { infer_einsum_of(op, 1, results); }

// A letter that occurs twice in an operand takes its diagonal, so that dim must be whole.
ShardingRule rule_einsum(const OpView& op) {
  RuleBuilder rule(op);
  const auto labels = *einsum_labels(op.attrs().get<std::string>("einsum_config"));
  const std::string& kept = labels.back();
  const auto size_of = [&](char label) {
    for (size_t i = 0;; ++i) {
      const size_t dim = labels[i].find(label);
      if (dim != std::string::npos) return op.operand_type(i).shape[dim];
    }
  };
  std::string order = kept;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    for (char label : labels[i]) {
      if (order.find(label) == std::string::npos) order += label;
    }
  }
  for (char label : order) {
    const bool diagonal = std::any_of(labels.begin(), labels.end() - 1, [&](const std::string& operand) {
      return std::count(operand.begin(), operand.end(), label) > 1;
    });
    const int64_t size = size_of(label);
    const auto whole = [&] { return rule.need_replication(size); };
    std::optional<FactorId> factor;
    if (!diagonal)
      factor = kept.find(label) == std::string::npos ? rule.reduction(size, Reducer::kSum) : rule.factor(size);
    for (size_t t = 0; t < labels.size(); ++t) {
      for (size_t dim = 0; dim < labels[t].size(); ++dim) {
        if (labels[t][dim] == label) rule.map(t, dim, factor ? *factor : whole());
      }
    }
  }
  return rule.build();
}

// ---- ragged_dot ----------------------------------------------------------------------------------------------------

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

// As dot_general. The position of a row of the ragged dim decides its group, so this dim and the groups must be whole.
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
  // The group dims are whole, and each tensor has a factor of its own.
  for (int64_t dim : dims.rhs_group) rule.map(1, at(dim), rule.need_replication(size(rhs, dim)));
  const Dims& groups = op.operand_type(2).shape;
  for (size_t dim = 0; dim < groups.size(); ++dim) rule.map(2, dim, rule.need_replication(groups[dim]));
  if (dims.contracts_ragged()) rule.map(result, 0, rule.need_replication(op.result_type().shape[0]));
  return rule.build();
}

constexpr OpDef kContractionOps[] = {
    propagation_only_op("stablehlo.dot", infer_dot, rule_dot,
                        "operands ( `,` `precision` `=` custom<precisions>($precision_config)^ )? attr-dict `:` "
                        "functional-type",
                        "The product of vectors and matrices (StableHLO dot)."),
    propagation_only_op("stablehlo.einsum", infer_einsum, rule_einsum,
                        "operands `,` `config` `=` $einsum_config attr-dict `:` functional-type",
                        "Sums of products by letters (StableHLO einsum)."),
    propagation_only_op("stablehlo.unary_einsum", infer_unary_einsum, rule_einsum,
                        "operands `,` `config` `=` $einsum_config attr-dict `:` functional-type",
                        "Sums by letters (StableHLO unary_einsum)."),
    propagation_only_op("chlo.ragged_dot", infer_ragged_dot, rule_ragged_dot, {},
                        "A dot per group of rows (CHLO ragged_dot)."),
};
static_assert(all_complete(kContractionOps));

}  // namespace

std::span<const OpDef> contraction_ops() { return kContractionOps; }

}  // namespace shardwise
