// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/plan/merge.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/array_view.h"
#include "shardwise/base/error.h"
#include "shardwise/runtime/axis_pieces.h"

namespace shardwise {
namespace {

// The dim of a tensor whose only factor is `factor`.
std::optional<size_t> dim_with(const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < rule.ndim(tensor); ++d) {
    const auto factors = rule.dim(tensor, d);
    // As the only factor: in a dim of factors (i, j), the shards along j do not follow each other.
    if (factors.size() == 1 && factors[0] == factor) return d;
  }
  return std::nullopt;
}

std::optional<Merge::Digit> digit_along(const OpView& op, const ShardingRule& rule, FactorId factor, AxisRef axis,
                                        const std::vector<bool>& varies) {
  Merge::Digit digit{axis, 0, {}, {}};
  bool is_used = false;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const auto dim = dim_with(rule, i, factor);
    // An operand with the factor that does not vary would have to be repeated. One that varies without the factor
    // differs from shard to shard in another way.
    // `has_factor` also counts dims of several factors, which dim_with passes over.
    if (dim.has_value() != varies[i] || rule.has_factor(i, factor) != varies[i]) return std::nullopt;
    digit.operand_dims.push_back(dim);
    is_used = is_used || dim.has_value();
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    const auto dim = dim_with(rule, rule.result_tensor(i), factor);
    if (!dim && rule.factors()[factor].kind == FactorKind::kPassThrough) return std::nullopt;
    digit.result_dims.push_back(dim);
  }
  return is_used ? std::optional(digit) : std::nullopt;
}

bool is_at_home(const OpView& op, const Merge::Digit& digit, const std::vector<Homes>& homes) {
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Homes& home = homes[op.operand(i).index];
    if (digit.operand_dims[i] && *digit.operand_dims[i] != (home.empty() ? 0U : home[digit.number])) return false;
  }
  return true;
}

std::optional<Merge::Digit> best_digit(const OpView& op, const ShardingRule& rule, const Digits& digits, size_t number,
                                       const std::vector<bool>& varies, const std::vector<Homes>& homes,
                                       Reducer reducer) {
  const FactorKind kind = reducer == Reducer::kNone ? FactorKind::kPassThrough : FactorKind::kReduction;
  std::optional<Merge::Digit> best;
  for (FactorId f = 0; f < rule.factors().size(); ++f) {
    if (rule.factors()[f].kind != kind || rule.factors()[f].reducer != reducer) continue;
    auto digit = digit_along(op, rule, f, digits[number], varies);
    if (!digit) continue;
    digit->number = number;
    // Shards adjacent along another dim would need a copy before they merge.
    if (is_at_home(op, *digit, homes)) return digit;
    if (!best) best = std::move(digit);
  }
  return best;
}

// Merged digits from the largest stride to the smallest, in the first operand that has them.
std::vector<size_t> memory_order(const Merge& merge, const std::vector<const Shards*>& operands) {
  std::vector<int64_t> strides;
  for (const Merge::Digit& digit : merge.digits) {
    size_t i = 0;
    // There is one: digit_along accepts a factor only if some operand varies along it.
    while (!digit.operand_dims[i]) ++i;
    strides.push_back(operands[i]->stacked().strides()[position_of(operands[i]->axes(), digit.axis)]);
  }
  std::vector<size_t> order(merge.digits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  return order;
}

std::optional<Shards> merged_operand(const Merge& merge, std::span<const size_t> digit_order, const Shards& shards,
                                     size_t operand) {
  const AxisList& axes = shards.axes();
  const AxisList rest = unmerged_axes(merge, axes);
  std::vector<size_t> order;
  for (const AxisRef& axis : rest) order.push_back(position_of(axes, axis));
  // Shards {x=4} of {2, 3}, merged along dim 0: the dims [x, 2, 3] stay in that order, x and 2 merge to {8, 3}.
  std::vector<size_t> groups(rest.size(), 1);
  for (size_t d = 0; d < shards.stacked().shape().size() - axes.size(); ++d) {
    const size_t begin = order.size();
    for (size_t g : digit_order) {
      const Merge::Digit& digit = merge.digits[g];
      if (digit.operand_dims[operand] == d) order.push_back(position_of(axes, digit.axis));
    }
    order.push_back(axes.size() + d);
    groups.push_back(order.size() - begin);
  }
  const std::optional<NdArray> view = merged_view(reorder_dims(shards.stacked(), order), groups);
  return view ? std::optional(Shards(rest, *view)) : std::nullopt;
}

// Whether there is a kernel for the shards joined along these digits; sets it, and the types of the results.
bool prepare(const OpView& op, Merge& merge) {
  if (merge.digits.empty()) return false;
  std::vector<TensorType> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(op.operand_type(i));
  merge.results.clear();
  for (size_t i = 0; i < op.result_count(); ++i) merge.results.push_back(op.result_type(i));
  for (const Merge::Digit& digit : merge.digits) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (digit.operand_dims[i]) operands[i].shape[*digit.operand_dims[i]] *= digit.axis.size;
    }
    for (size_t i = 0; i < merge.results.size(); ++i) {
      if (digit.result_dims[i]) merge.results[i].shape[*digit.result_dims[i]] *= digit.axis.size;
    }
  }
  // A slice with its limits as attributes has no kernel for a longer dim; it refuses by returning none.
  std::optional<Kernel> kernel = op.def().prepare(op, {operands, merge.results});
  if (kernel) merge.kernel = std::move(*kernel);
  return kernel.has_value();
}

}  // namespace

AxisList unmerged_axes(const Merge& merge, AxisList axes) {
  erase_if(axes, [&](const AxisRef& axis) {
    return std::ranges::any_of(merge.digits, [&](const Merge::Digit& digit) { return digit.axis == axis; });
  });
  return axes;
}

std::optional<Merge> find_merge(const OpView& op, const Digits& digits, const std::vector<DigitSet>& varying,
                                const std::vector<Homes>& homes, Reduction reduction) {
  // A side effect happens once per shard.
  if (op.result_count() == 0 || op.def().has_side_effect(op)) return std::nullopt;
  const ShardingRule& rule = sharding_rule(op);
  if (rule.empty()) return std::nullopt;
  Merge merge, required;
  std::vector<bool> varies(op.operand_count());
  for (size_t g = 0; g < digits.size(); ++g) {
    const DigitSet bit = DigitSet{1} << g;
    const bool is_reduced = (reduction.digits & bit) != 0;
    if (!is_reduced && (varying[op.result().index] & bit) == 0) continue;
    for (size_t i = 0; i < varies.size(); ++i) varies[i] = (varying[op.operand(i).index] & bit) != 0;
    auto digit = best_digit(op, rule, digits, g, varies, homes, is_reduced ? reduction.reducer : Reducer::kNone);
    if (is_reduced && !digit) return std::nullopt;
    if (is_reduced) required.digits.push_back(*digit);
    if (digit) merge.digits.push_back(std::move(*digit));
  }
  if (prepare(op, merge)) return merge;
  // The kernel does not suit shards that are joined along some factor: it knows positions along it.
  std::optional<Merge> best;
  if (reduction.digits != 0) {
    if (!prepare(op, required)) return std::nullopt;
    best = std::move(required);
  }
  for (const Merge::Digit& digit : merge.digits) {
    if ((reduction.digits >> digit.number & 1) != 0) continue;
    Merge more;
    if (best) more.digits = best->digits;
    more.digits.push_back(digit);
    if (merge.digits.size() > 1 && prepare(op, more)) best = std::move(more);
  }
  return best;
}

std::optional<std::vector<Shards>> merged_operands(const Merge& merge, const std::vector<const Shards*>& operands,
                                                   std::vector<size_t>& order) {
  if (!std::all_of(operands.begin(), operands.end(), [](const Shards* shards) { return shards->is_stacked(); })) {
    return std::nullopt;
  }
  order = memory_order(merge, operands);
  std::vector<Shards> merged;
  merged.reserve(operands.size());
  for (size_t i = 0; i < operands.size(); ++i) {
    auto operand = merged_operand(merge, order, *operands[i], i);
    if (!operand) return std::nullopt;
    merged.push_back(std::move(*operand));
  }
  return merged;
}

Shards unmerged_result(const Merge& merge, std::span<const size_t> order, size_t result, const Shards& merged,
                       const AxisList& axes) {
  // The inverse of merged_operand: a result dim of 8 with x=4 inside becomes [x=4, 2], and x moves to the front.
  std::vector<AxisList> split(merge.results[result].shape.size());
  for (size_t g : order) {
    const Merge::Digit& digit = merge.digits[g];
    if (const auto dim = digit.result_dims[result]) split[*dim].push_back(digit.axis);
  }
  return {axes, parts_of(merged.stack(), merged.axes(), split, axes)};
}

}  // namespace shardwise
