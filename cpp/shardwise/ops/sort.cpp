// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

// The default is -1, the last dim.
int64_t sorted_dim(const Attrs& attrs, int64_t ndim) {
  const auto* dimension = attrs.find<IntAttr>("dimension");
  const int64_t dim = dimension == nullptr ? -1 : dimension->value;
  return dim < 0 ? dim + ndim : dim;
}

void expect_comparator(const InferContext& op) {
  op.expect_regions(1);
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  bool fits = region.arguments.size() == 2 * op.operand_count() && region.results.size() == 1 &&
              module.type(region.results[0]) == TensorType{DType::kBool, {}};
  for (size_t i = 0; fits && i < region.arguments.size(); ++i) {
    fits = module.type(region.arguments[i]) == TensorType{op.operand(i / 2).dtype, {}};
  }
  if (fits) return;
  op.fail_dtype("the region must compare two scalars of each operand", op.operand_types_text(), "return an i1");
}

void infer_sort(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("must have operands");
  const int64_t ndim = op.operand(0).ndim();
  if (op.attrs().find("dimension") != nullptr) op.attr<IntAttr>("dimension");
  const int64_t dim = sorted_dim(op.attrs(), ndim);
  if (dim < 0 || dim >= ndim) {
    op.fail_shape("dimension must be a dim of the operands, or count from the end",
                  str("dimension = ", dim, " for ", op.operand_types_text()));
  }
  for (size_t i = 1; i < op.operand_count(); ++i) {
    if (op.operand(i).shape != op.operand(0).shape) {
      op.fail_shape("operands must have the same shape", op.operand_types_text(), "broadcast one of them first");
    }
  }
  expect_comparator(op);
  for (size_t i = 0; i < op.operand_count(); ++i) results.push_back(result_or_declared(op, op.operand(i), i));
}

// When there is no other dim to shard, the sorted dim does not propagate its sharding.
ShardingRule rule_sort(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.operand_type(0).shape;
  const auto sorted = static_cast<size_t>(sorted_dim(op.attrs(), op.operand_type(0).ndim()));
  bool alone = true;
  for (size_t dim = 0; dim < shape.size(); ++dim) alone = alone && (dim == sorted || shape[dim] == 1);
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const FactorId factor = dim == sorted ? rule.need_replication(shape[dim], alone) : rule.factor(shape[dim]);
    for (size_t tensor = 0; tensor < rule.tensor_count(); ++tensor) rule.map(tensor, dim, factor);
  }
  return rule.build();
}

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

constexpr OpDef kSortOps[] = {
    propagation_only_op("stablehlo.sort", infer_sort, rule_sort, {},
                        "Sorts several tensors alike along one dim by a comparison (StableHLO sort)."),
    propagation_only_op("chlo.top_k", infer_top_k, rule_top_k,
                        "`(` operands `,` `k` `=` $k `)` attr-dict `:` operand-type `->` `(` result-type `)`",
                        "The k largest elements of each row, and where they stand (CHLO top_k)."),
};
static_assert(all_complete(kSortOps));

}  // namespace

std::span<const OpDef> sort_ops() { return kSortOps; }

}  // namespace shardwise
