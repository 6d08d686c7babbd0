// SPDX-License-Identifier: Apache-2.0
//
// Ops that read or write ranges. Conservative propagation avoids the exchange that a sharded range would need.
#include <algorithm>

#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

// Elements stay on their device along dims where `moves` is false.
template <class Moves>
ShardingRule rule_of_range(const OpView& op, RuleMode mode, Moves moves) {
  RuleBuilder rule(op);
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const bool resized = from[dim] != to[dim];
    const FactorId factor =
        moves(dim) ? rule.permutation(from[dim], resized && mode.conservative) : rule.factor(from[dim]);
    rule.map(0, dim, factor).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

ShardingRule rule_slice(const OpView& op, RuleMode mode) {
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  return rule_of_range(op, mode, [&](size_t dim) { return from[dim] != to[dim]; });
}

// Shardy compares sizes only; padding that shifts a dim (low 1, high -1) moves its elements all the same.
ShardingRule rule_pad(const OpView& op, RuleMode mode) {
  const Dims& shape = op.operand_type(0).shape;
  const Dims &low = op.attrs().get<IntArray>("edge_padding_low"), &high = op.attrs().get<IntArray>("edge_padding_high"),
             &interior = op.attrs().get<IntArray>("interior_padding");
  return rule_of_range(
      op, mode, [&](size_t dim) { return low[dim] != 0 || high[dim] != 0 || (interior[dim] != 0 && shape[dim] > 1); });
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
  RuleBuilder rule(op);
  const auto joined = static_cast<size_t>(op.attrs().get_int("dimension"));
  const Dims& shape = op.result_type().shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (dim == joined && mode.conservative) continue;
    const FactorId factor = dim != joined    ? rule.factor(shape[dim])
                            : mode.neighbors ? rule.permutation(shape[dim])
                                             : rule.need_replication(shape[dim]);
    for (size_t tensor = 0; tensor < rule.tensor_count(); ++tensor) rule.map(tensor, dim, factor);
  }
  return rule.build();
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
  RuleBuilder rule(op);
  const Dims& whole = op.operand_type(0).shape;
  const Dims& part = op.operand_type(1).shape;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    const FactorId factor = rule.factor(whole[dim]);
    const FactorId update = whole[dim] == part[dim] ? factor
                            : mode.neighbors        ? rule.factor(part[dim])
                                                    : rule.need_replication(part[dim]);
    rule.map(0, dim, factor).map(1, dim, update).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

// Shardy combines no scatters by a bitwise op on integers.
ShardingRule rule_scatter(const OpView& op, RuleMode) {
  const ShardingRule& own = op.module().context().sharding_rule(op);
  const bool is_logical = op.operand_type(0).dtype == DType::kBool;
  RuleBuilder rule(op);
  for (const Factor& factor : own.factors()) {
    const bool is_bitwise = factor.reducer == Reducer::kAnd || factor.reducer == Reducer::kOr;
    if (factor.kind != FactorKind::kReduction) {
      rule.factor(factor.size, factor.kind, factor.blocked);
    } else if (is_bitwise && !is_logical) {
      rule.need_replication(factor.size);
    } else {
      rule.reduction(factor.size, factor.reducer, factor.blocked);
    }
  }
  for (size_t tensor = 0; tensor < own.tensor_count(); ++tensor) {
    for (size_t dim = 0; dim < own.ndim(tensor); ++dim) {
      for (const FactorId factor : own.dim(tensor, dim)) rule.map(tensor, dim, factor);
    }
  }
  return rule.build();
}

constexpr ShardyOp kSlicingOps[] = {
    {.op = "stablehlo.slice", .rule = rule_slice, .keeps_constants = true},
    {.op = "stablehlo.pad", .rule = rule_pad},
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
