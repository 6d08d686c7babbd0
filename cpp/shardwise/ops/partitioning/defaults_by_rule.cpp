// SPDX-License-Identifier: Apache-2.0
//
// The fields of OpDef that follow from the sharding rule (declared in ir/op_def.h):
//
//   partition_by_rule   masks the padding of uneven dims that carry a reduction factor with the neutral element of its
//                       reducer, then runs the same op on the local operands:
//                         custom_sum over 17 columns on 4 devices:   select(column < 17, x, 0), custom_sum
//   cost_by_rule        bytes of results and of what the ranges read of operands; operations: none for movement, else
//                       the product of all factors, twice for a contraction
#include <algorithm>
#include <utility>
#include <vector>

#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/shared/operation_counts.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

bool is_uneven_along(const LayoutView& layout, const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < layout.ndim(); ++d) {
    if (!layout.dim(d).uneven()) continue;
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

// The indices of a dim of `size` that a range reads for `count` results. [0:8:4] of 8 rows spans [0, 5), but reads 2 rows:
// neither the span nor the count of reads is exceeded. The offset, which is of the global dim, does not matter.
int64_t indices_read(const Range& range, int64_t count, int64_t size) {
  if (count <= 0) return 0;
  const int64_t scale = range.scale < 0 ? -range.scale : range.scale;
  const int64_t steps =
      saturated_sum(saturated_product(scale, count - 1), saturated_product(range.dilation, range.window - 1));
  const int64_t span = steps / range.holes + 1;
  return std::min({size, saturated_product(count, range.window), range.is_static() ? span : size});
}

// The elements of an operand that the op reads: of dims with a range, what the range reads.
int64_t elements_read(const ShardingRule& rule, const LocalTypes& types, size_t operand) {
  const Dims& shape = types.operand(operand).shape;
  int64_t count = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const Range* range = rule.has_ranges() ? rule.range(operand, d) : nullptr;
    int64_t read = shape[d];
    for (size_t e = 0; range != nullptr && e < rule.ndim(rule.result_tensor(0)); ++e) {
      // The result's dim with the same factor is the one whose indices the range is of.
      if (rule.dim(rule.result_tensor(0), e)[0] != rule.dim(operand, d)[0]) continue;
      read = std::min(read, indices_read(*range, types.result().shape[e], shape[d]));
    }
    count = saturated_product(count, read);
  }
  return count;
}

std::vector<int64_t> touched_by_rule(const ShardingRule& rule, const LocalTypes& types) {
  std::vector<int64_t> touched(types.count());
  for (size_t t = 0; t < touched.size(); ++t) {
    const bool is_operand = !rule.empty() && t < rule.operand_count();
    const int64_t elements = is_operand ? elements_read(rule, types, t) : types.tensor(t).element_quantity();
    touched[t] = saturated_product(elements, item_size(types.tensor(t).dtype));
  }
  return touched;
}

// The local sizes of factors. A result's dim counts where an operand's has another size: the windows over a dim, not its
// rows. Where only a dim of several factors has a factor, the first such one takes all that the others leave.
std::vector<int64_t> local_factor_sizes(const ShardingRule& rule, const LocalTypes& types) {
  constexpr int64_t kUnknown = -1;
  std::vector<int64_t> sizes(rule.factors().size(), kUnknown);
  rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
    if (factors.size() == 1) sizes[factors[0]] = types.tensor(tensor).shape[dim];
  });
  rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
    int64_t known = 1;
    for (const FactorId factor : factors) known = saturated_product(known, std::max<int64_t>(sizes[factor], 1));
    for (const FactorId factor : factors) {
      if (sizes[factor] != kUnknown) continue;
      sizes[factor] = ceil_div(types.tensor(tensor).shape[dim], known);
      known = saturated_product(known, std::max<int64_t>(sizes[factor], 1));
    }
  });
  return sizes;
}

int64_t product_of_factors(const ShardingRule& rule, const LocalTypes& types) {
  int64_t product = 1;
  for (const int64_t size : local_factor_sizes(rule, types)) product = saturated_product(product, size);
  return product;
}

int64_t operations_by_rule(const OpView& op, const ShardingRule& rule, const LocalTypes& types) {
  if (!rule.empty()) return product_of_factors(rule, types);
  int64_t count = 0;
  for (size_t i = 0; i < op.result_count(); ++i) count = saturated_sum(count, types.result(i).element_quantity());
  return count;
}

}  // namespace

void partition_by_rule(PartitionContext& context) { partition_by_rule(context, attrs_of(context.op())); }

void partition_by_rule(PartitionContext& context, AttrsId local_attrs) {
  const OpView op = context.op();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(masked_for_reductions(context, i));
  set_results(context, create_again(context.builder(), op, operands, local_attrs, local_result_types(context)));
}

OpCost cost_by_rule(const OpView& op, const LocalTypes& types) {
  const ShardingRule& rule = sharding_rule(op);
  OpCost cost{.touched = touched_by_rule(rule, types)};
  if (op.def().traits.movement) return cost;
  const int64_t operations = operations_by_rule(op, rule, types);
  if (is_contraction(op.def(), rule)) {
    cost.matrix = contraction_flops(operations, types.result().dtype);
  } else {
    cost.vector = operations;
  }
  return cost;
}

OpCost cost_of_function(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  if (is_inexact(types.operand(0).dtype)) std::swap(cost.vector, cost.transcendental);
  return cost;
}

OpCost costs_nothing(const OpView&, const LocalTypes& types) {
  return {.touched = std::vector<int64_t>(types.count(), 0)};
}

bool is_contraction(const OpDef& def, const ShardingRule& rule) {
  if (rule.empty() || def.regions != Regions::kNone || rule.operand_count() < 2) return false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    const bool is_sum = rule.factors()[f].kind == FactorKind::kReduction && rule.factors()[f].reducer == Reducer::kSum;
    if (is_sum && rule.has_factor(0, id) && rule.has_factor(1, id)) return true;
  }
  return false;
}

}  // namespace shardwise
