// SPDX-License-Identifier: Apache-2.0
//
// Ops with windows that move over dims. Conservative propagation leaves these dims alone.
#include "shardwise/ops/shared/windows.h"

#include <algorithm>

#include "shardwise/ops/contraction/convolution.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

// There is one factor per dim.
ShardingRule rule_reduce_window(const OpView& op, RuleMode mode) {
  const Window window = Window::of(op);
  return edited_rule(op, [&](Factor factor, size_t dim) {
    // Shardy ignores base dilations, so they block nothing.
    const bool moves =
        window.sizes[dim] != 1 || window.strides[dim] != 1 || window.low[dim] != 0 || window.high[dim] != 0;
    factor.blocked = factor.kind == FactorKind::kPermutation && moves && mode.conservative;
    return factor;
  });
}

ShardingRule rule_select_and_scatter(const OpView& op, RuleMode mode) {
  return edited_rule(op, [&](Factor factor, size_t) {
    factor.blocked = factor.kind != FactorKind::kPassThrough && mode.conservative;
    return factor;
  });
}

// The window number, which the result keeps, and the position within a window, which is summed: the larger one major,
// as far as the input has elements for both.
void map_windows_and_places(RuleBuilder& rule, const OpView& op, const ConvolutionNumbers& numbers, size_t i) {
  const auto input = static_cast<size_t>(numbers.lhs.spatial[i]), kernel = static_cast<size_t>(numbers.rhs.spatial[i]),
             output = static_cast<size_t>(numbers.result.spatial[i]);
  const int64_t windows = op.result_type().shape[output], places = op.operand_type(1).shape[kernel];
  int64_t left = op.operand_type(0).shape[input];
  const auto take = [&](bool is_window) {
    const int64_t taken = std::min(left, is_window ? windows : places);
    if (taken <= 1) return;
    const FactorId factor = is_window ? rule.permutation(taken) : rule.reduction(taken, Reducer::kSum);
    rule.map(0, input, factor);
    is_window ? rule.map(rule.result_tensor(0), output, factor) : rule.map(1, kernel, factor);
    left /= taken;
  };
  take(places <= windows);
  take(places > windows);
}

void map_nothing(RuleBuilder&, const OpView&, const ConvolutionNumbers&, size_t) {}

ShardingRule rule_convolution(const OpView& op, RuleMode mode) {
  return convolution_rule(op, mode.conservative ? map_nothing : map_windows_and_places);
}

constexpr ShardyOp kWindowOps[] = {
    {.op = "stablehlo.reduce_window", .rule = rule_reduce_window},
    {.op = "stablehlo.select_and_scatter", .rule = rule_select_and_scatter},
    {.op = "stablehlo.convolution", .rule = rule_convolution},
};

}  // namespace

std::span<const ShardyOp> shardy_window_ops() { return kWindowOps; }

}  // namespace shardwise
