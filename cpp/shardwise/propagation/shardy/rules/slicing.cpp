// SPDX-License-Identifier: Apache-2.0
//
// Ops that read or write ranges. Conservative propagation avoids the exchange that a sharded range would need.
#include <optional>

#include "shardwise/ir/builder.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

// A slice or a pad. Shardy compares sizes only; padding that shifts a dim (low 1, high -1) moves its elements all the
// same. There is one factor per dim.
ShardingRule rule_of_range(const OpView& op, RuleMode mode) {
  return edited_rule(op, [&](Factor factor, size_t dim) {
    const bool is_resized = op.operand_type(0).shape[dim] != op.result_type().shape[dim];
    factor.blocked = factor.kind == FactorKind::kPermutation && is_resized && mode.conservative;
    return factor;
  });
}

// Whether all operands are slices, or some are and all are of one value: then a sharded dim needs an exchange with
// neighbors only.
bool joins_slices(const OpView& op, Neighbors&) {
  static const OpDef* const slice = &get_op("stablehlo.slice");
  const Module& module = op.module();
  size_t slices = 0;
  bool of_one_value = true;
  ValueId first;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const bool is_slice = Neighbors::maker(op, i) == slice;
    const ValueId value = is_slice ? module.operands(module.value(op.operand(i)).op)[0] : op.operand(i);
    slices += is_slice ? 1 : 0;
    if (i == 0) first = value;
    of_one_value = of_one_value && value == first;
  }
  return slices == op.operand_count() || (slices > 0 && of_one_value);
}

ShardingRule rule_concatenate(const OpView& op, RuleMode mode) {
  return edited_rule(op, [&](Factor factor, size_t) -> std::optional<Factor> {
    if (factor.kind == FactorKind::kPassThrough) return factor;
    if (mode.conservative) return std::nullopt;
    if (mode.neighbors) factor.kind = FactorKind::kPermutation;
    return factor;
  });
}

bool has_constant_starts(const OpView& op, Neighbors&) {
  for (size_t i = 2; i < op.operand_count(); ++i) {
    const OpDef* maker = Neighbors::maker(op, i);
    if (maker == nullptr || !maker->traits.constant_like) return false;
  }
  return true;
}

// The position of an update relative to a shard depends on the shard, unless the starts are constants.
ShardingRule rule_dynamic_update_slice(const OpView& op, RuleMode mode) {
  return edited_rule(op, [&](Factor factor, size_t) {
    if (mode.neighbors) factor.kind = FactorKind::kPassThrough;
    return factor;
  });
}

// Shardy combines no scatters by a bitwise op on integers.
ShardingRule rule_scatter(const OpView& op, RuleMode) {
  const bool is_logical = op.operand_type(0).dtype == DType::kBool;
  return edited_rule(op, [&](Factor factor, size_t) {
    const bool is_bitwise = factor.reducer == Reducer::kAnd || factor.reducer == Reducer::kOr;
    if (is_bitwise && !is_logical) factor = {.size = factor.size, .kind = FactorKind::kNeedReplication};
    return factor;
  });
}

constexpr ShardyOp kSlicingOps[] = {
    {.op = "stablehlo.slice", .rule = rule_of_range, .keeps_constants = true},
    {.op = "stablehlo.pad", .rule = rule_of_range},
    {.op = "stablehlo.concatenate", .rule = rule_concatenate, .looks_around = joins_slices},
    {.op = "stablehlo.dynamic_slice", .precedence = Precedence::kForwardEarly},
    {.op = "stablehlo.dynamic_update_slice",
     .rule = rule_dynamic_update_slice,
     .looks_around = has_constant_starts,
     .precedence = Precedence::kForwardEarly},
    {.op = "stablehlo.scatter", .rule = rule_scatter},
};

}  // namespace

std::span<const ShardyOp> shardy_slicing_ops() { return kSlicingOps; }

}  // namespace shardwise
