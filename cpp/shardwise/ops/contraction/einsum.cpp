// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/contraction/einsum.h"

#include <algorithm>
#include <map>
#include <optional>

#include "shardwise/base/text.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

// The letters of each tensor, operands first; nothing where the text is no einsum of letters.
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

// A letter twice in one operand takes its diagonal, which must be whole.
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

constexpr OpDef kEinsumOps[] = {
    propagation_only_op("stablehlo.einsum", infer_einsum, rule_einsum,
                        "operands `,` `config` `=` $einsum_config attr-dict `:` functional-type",
                        "Sums of products by letters (StableHLO einsum)."),
    propagation_only_op("stablehlo.unary_einsum", infer_unary_einsum, rule_einsum,
                        "operands `,` `config` `=` $einsum_config attr-dict `:` functional-type",
                        "Sums by letters (StableHLO unary_einsum)."),
};
static_assert(all_complete(kEinsumOps));

}  // namespace

std::span<const OpDef> einsum_ops() { return kEinsumOps; }

}  // namespace shardwise
