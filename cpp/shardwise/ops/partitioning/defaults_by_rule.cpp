// SPDX-License-Identifier: Apache-2.0
//
// The fields of OpDef that follow from the sharding rule (declared in ir/op_def.h):
//
//   partition_by_rule   masks the padding of uneven dims that carry a reduction factor with the neutral element of its
//                       reducer, then runs the same op on the local operands:
//                         custom_sum over 17 columns on 4 devices:   select(column < 17, x, 0), custom_sum
//   cost_by_rule        bytes of results and of what the ranges read of operands; flops: none for movement, else the
//                       product of all factors, twice for a contraction
#include <algorithm>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

bool is_uneven_along(const LocalLayout& layout, const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (!layout.dims[d].uneven()) continue;
    for (const FactorId id : rule.dim(tensor, d)) {
      if (id == factor) return true;
    }
  }
  return false;
}

ValueId masked_for_reductions(PartitionContext& context, size_t operand) {
  const ShardingRule& rule = context.rule();
  ValueId value = context.operand(operand);
  if (rule.empty()) return value;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    const Factor& factor = rule.factors()[f];
    if (factor.kind != FactorKind::kReduction) continue;
    // Only reductions read padding; elementwise ops may compute garbage there.
    if (!is_uneven_along(context.operand_layout(operand), rule, operand, id)) continue;
    const Scalar neutral = neutral_element(factor.reducer, context.op().operand_type(operand).dtype);
    value = context.masked_operand(operand, id, neutral);
  }
  return value;
}

// The part of an operand that the ranges of its dims read.
double part_read(const OpView& op, const ShardingRule& rule, size_t operand) {
  double part = 1;
  for (size_t d = 0; rule.has_ranges() && d < rule.ndim(operand); ++d) {
    const Range* range = rule.range(operand, d);
    const int64_t size = op.operand_type(operand).shape[d];
    const size_t result = rule.result_tensor(0);
    for (size_t e = 0; range != nullptr && size > 0 && e < rule.ndim(result); ++e) {
      // The result's dim with the same factor is the one whose indices the range is of.
      if (rule.dim(result, e)[0] != rule.dim(operand, d)[0]) continue;
      const int64_t count = op.result_type().shape[e];
      const Interval hull = range->is_static() ? range->reads({0, count}, size) : Interval{0, size};
      // [0:8:4] of 8 rows spans [0, 5), but reads 2 rows: neither the span nor the count of reads is exceeded.
      part *= static_cast<double>(std::min(hull.end - hull.begin, count * range->window)) / static_cast<double>(size);
    }
  }
  return part;
}

}  // namespace

void partition_by_rule(PartitionContext& context) { partition_by_rule(context, attrs_of(context.op())); }

void partition_by_rule(PartitionContext& context, AttrsId local_attrs) {
  const OpView op = context.op();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(masked_for_reductions(context, i));
  set_results(context, create_again(context.builder(), op, operands, local_attrs, local_result_types(context)));
}

OpCost cost_by_rule(const OpView& op) {
  OpCost cost;
  const ShardingRule& rule = sharding_rule(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    cost.bytes += static_cast<double>(op.operand_type(i).nbytes()) * part_read(op, rule, i);
  }
  for (size_t i = 0; i < op.result_count(); ++i) cost.bytes += static_cast<double>(op.result_type(i).nbytes());
  if (op.def().traits.movement) return cost;
  if (rule.empty()) {
    for (size_t i = 0; i < op.result_count(); ++i) cost.flops += static_cast<double>(op.result_type(i).size());
    return cost;
  }
  cost.flops = 1;
  bool contracts = false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const Factor& factor = rule.factors()[f];
    cost.flops *= static_cast<double>(factor.size);
    size_t carriers = 0;
    for (size_t t = 0; t < rule.operand_count(); ++t) carriers += rule.has_factor(t, static_cast<FactorId>(f)) ? 1 : 0;
    // Two operands share the reduced factor, so each element costs a multiplication and an addition.
    contracts = contracts || (factor.kind == FactorKind::kReduction && carriers > 1);
  }
  if (contracts) cost.flops *= 2;
  return cost;
}

}  // namespace shardwise
