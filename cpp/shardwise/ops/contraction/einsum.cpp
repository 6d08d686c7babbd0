// SPDX-License-Identifier: Apache-2.0
//
// Sums of products by letters: einsum of two tensors, unary_einsum of one.
//
//   %2 = stablehlo.einsum %0, %1, config = "ij,jk->ik" : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
//   ([i, k], [k, j])->([i, j]) {i=4, j=3, k=8} reduction={k}
#include <algorithm>
#include <map>
#include <optional>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/op_kinds.h"

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

template <size_t kCount>
void infer_einsum(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(kCount);
  expect_same_dtype(op, kCount);
  const std::string& config = op.attr<std::string>("einsum_config");
  const auto labels = einsum_labels(config);
  bool fits = labels && labels->size() == kCount + 1;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; fits && i < kCount; ++i) {
    const Dims& shape = op.operand(i).shape;
    fits = (*labels)[i].size() == shape.size();
    for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
      // try_emplace keeps the size that the letter had first, so each later dim is compared with it.
      fits = sizes.try_emplace((*labels)[i][dim], shape[dim]).first->second == shape[dim];
    }
  }
  Dims shape;
  for (size_t i = 0; fits && i < labels->back().size(); ++i) {
    const char label = labels->back()[i];
    // Each result letter occurs once and in some operand: "ij->ii" would need a diagonal matrix.
    fits = sizes.contains(label) && labels->back().find(label) == i;
    if (fits) shape.push_back(sizes[label]);
  }
  if (!fits) {
    op.fail_shape("einsum_config must have a letter per dim, with one size per letter",
                  str(quote(config), " for ", op.operand_types_text()), "write it such as \"ij,jk->ik\"");
  }
  results.push_back(contracted(op, std::move(shape)));
}

// A letter twice in one operand takes its diagonal, which must be whole.
ShardingRule rule_einsum(const OpView& op) {
  RuleBuilder rule(op);
  const auto labels = *einsum_labels(op.attrs().get<std::string>("einsum_config"));
  const std::string& kept = labels.back();
  // The letter is in some operand: infer checked the letters of the result.
  const auto size_of = [&](char label) {
    for (size_t i = 0;; ++i) {
      const size_t dim = labels[i].find(label);
      if (dim != std::string::npos) return op.operand_type(i).shape[dim];
    }
  };
  // As in the rule of dot_general: the factors of the result come first, then those that are summed.
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
    // Each dim gets a factor of its own: shards of two dims that share one would hold only blocks of the diagonal.
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

// ---- decomposition -------------------------------------------------------------------------------------------------

bool has(const std::string& labels, char label) { return labels.find(label) != std::string::npos; }

// A tensor and the letter of each dim.
struct Labelled {
  ValueId value;
  std::string labels;
};

Labelled transposed(Builder& builder, const Labelled& operand, const std::string& labels) {
  Dims permutation;
  for (const char label : labels) permutation.push_back(static_cast<int64_t>(operand.labels.find(label)));
  return {build_transpose(builder, operand.value, permutation), labels};
}

// The diagonal of two dims is every (n + 1)-th row of both as one dim.
Labelled diagonal(Builder& builder, const Labelled& operand, size_t first, size_t second) {
  const Dims pair{static_cast<int64_t>(first), static_cast<int64_t>(second)};
  Dims permutation = pair;
  std::string labels(1, operand.labels[first]);
  for (const int64_t dim : other_dims(static_cast<int64_t>(operand.labels.size()), pair)) {
    permutation.push_back(dim);
    labels += operand.labels[static_cast<size_t>(dim)];
  }
  const ValueId front = build_transpose(builder, operand.value, permutation);
  const Dims shape = builder.module().type(front).shape;
  Dims rows(shape.begin() + 1, shape.end());
  rows[0] = shape[0] * shape[0];
  // (3, 3) as one dim of 9 has the diagonal at 0, 4, 8.
  return {build_slice_along(builder, build_reshape(builder, front, rows), 0, 0, rows[0], shape[0] + 1), labels};
}

Labelled without_repeated_labels(Builder& builder, Labelled operand) {
  for (size_t dim = 0; dim < operand.labels.size(); ++dim) {
    const size_t again = operand.labels.find(operand.labels[dim], dim + 1);
    if (again == std::string::npos) continue;
    operand = diagonal(builder, operand, dim, again);
    // Starts over, because the dims moved; a letter may be there three times.
    dim = static_cast<size_t>(-1);
  }
  return operand;
}

// Sums over the letters that nothing else has.
Labelled summed(Builder& builder, const Labelled& operand, const std::string& kept, DType dtype) {
  Dims dims;
  std::string labels;
  for (size_t dim = 0; dim < operand.labels.size(); ++dim) {
    if (has(kept, operand.labels[dim])) {
      labels += operand.labels[dim];
    } else {
      dims.push_back(static_cast<int64_t>(dim));
    }
  }
  if (dims.empty()) return operand;
  // Converted before the sum: int8 operands of an int32 result would wrap around in their own dtype.
  const ValueId wide = build_convert(builder, operand.value, dtype);
  return {build_reduce(builder, wide, {}, Reducer::kSum, dims), labels};
}

// The operand with each letter once, and only letters of `kept`.
Labelled prepared_operand(DecomposeContext& context, size_t i, const std::string& labels, const std::string& kept) {
  Builder& builder = context.builder();
  const Labelled operand = without_repeated_labels(builder, {context.operand(i), labels});
  return summed(builder, operand, kept, dtype_of_sums(context.op().result_type().dtype));
}

void decompose_unary_einsum(DecomposeContext& context) {
  Builder& builder = context.builder();
  const auto labels = *einsum_labels(context.op().attrs().get<std::string>("einsum_config"));
  const Labelled operand = prepared_operand(context, 0, labels[0], labels[1]);
  const ValueId result = transposed(builder, operand, labels[1]).value;
  context.set_result(0, build_convert(builder, result, context.op().result_type().dtype));
}

void decompose_einsum(DecomposeContext& context) {
  Builder& builder = context.builder();
  const auto labels = *einsum_labels(context.op().attrs().get<std::string>("einsum_config"));
  const std::string& kept = labels[2];
  // A letter of only one operand is summed before the product, which then has fewer elements.
  Labelled lhs = prepared_operand(context, 0, labels[0], kept + labels[1]);
  Labelled rhs = prepared_operand(context, 1, labels[1], kept + labels[0]);
  const DType result_dtype = context.op().result_type().dtype;
  const DType dtype = builder.module().type(lhs.value).dtype;
  if (dtype != builder.module().type(rhs.value).dtype) {  // one of them was summed in a wider dtype
    lhs.value = build_convert(builder, lhs.value, dtype_of_sums(result_dtype));
    rhs.value = build_convert(builder, rhs.value, dtype_of_sums(result_dtype));
  }
  DotDims dims;
  std::string batch, free;
  for (size_t dim = 0; dim < lhs.labels.size(); ++dim) {
    const char label = lhs.labels[dim];
    if (!has(rhs.labels, label)) {
      free += label;
      continue;
    }
    // A shared letter that the result keeps is a batching dim; one that it drops is contracted.
    const bool is_batch = has(kept, label);
    if (is_batch) batch += label;
    (is_batch ? dims.lhs_batching : dims.lhs_contracting).push_back(static_cast<int64_t>(dim));
    (is_batch ? dims.rhs_batching : dims.rhs_contracting).push_back(static_cast<int64_t>(rhs.labels.find(label)));
  }
  for (const char label : rhs.labels) {
    if (!has(lhs.labels, label)) free += label;
  }
  const ValueId product = build_dot(builder, lhs.value, rhs.value, dims, dtype_of_sums(result_dtype));
  const ValueId result = transposed(builder, {product, batch + free}, kept).value;
  context.set_result(0, build_convert(builder, result, result_dtype));
}

constexpr std::string_view kFormat = "operands `,` `config` `=` $einsum_config attr-dict `:` functional-type";

constexpr OpDef kEinsumOps[] = {
    composed_op("stablehlo.einsum", infer_einsum<2>, rule_einsum, decompose_einsum, kFormat,
                "Sums of products by letters (StableHLO einsum)."),
    composed_op("stablehlo.unary_einsum", infer_einsum<1>, rule_einsum, decompose_unary_einsum, kFormat,
                "Sums by letters (StableHLO unary_einsum)."),
};
static_assert(all_complete(kEinsumOps));

}  // namespace

std::span<const OpDef> einsum_ops() { return kEinsumOps; }

}  // namespace shardwise
