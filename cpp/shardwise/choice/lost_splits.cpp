// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/lost_splits.h"

#include <algorithm>
#include <utility>

#include "shardwise/base/dims.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

bool is_loop(const Module& module, OpId op) { return module.op(op).def->regions == Regions::kLoop; }

bool is_in_loop(const Module& module, OpId op) {
  for (RegionId region = module.op(op).parent; region;) {
    const OpId owner = module.region(region).op;
    if (!owner) return false;
    if (is_loop(module, owner)) return true;
    region = module.op(owner).parent;
  }
  return false;
}

FactorKind kind_of(const ShardingRule& rule, size_t tensor, size_t dim) {
  return rule.factors()[rule.dim(tensor, dim)[0]].kind;
}

// The op reads one place of the dim, which is known only when it runs: a row of a stack.
bool reads_row(const OpView& op, const ShardingRule& rule, size_t operand, size_t dim) {
  if (!op.def().traits.movement || operand != 0 || op.operand_count() < 2) return false;
  if (const Range* range = rule.range(operand, dim)) return !range->is_static();
  // Indices of one place, not a list of ids.
  return kind_of(rule, operand, dim) == FactorKind::kNeedReplication &&
         std::cmp_less_equal(op.operand_type(1).size(), rule.ndim(0));
}

// Whether it returns the elements of its operand, all of them.
bool is_view(const OpView& op) {
  const bool moves = op.def().traits.movement && op.operand_count() == 1 && op.result_count() == 1;
  return moves && op.operand_type(0).size() == op.result_type().size();
}

// The same elements in the same order, in other dims.
bool regroups(const OpView& op, const ShardingRule& rule, size_t dim) {
  if (!is_view(op)) return false;
  const auto factors = rule.dim(0, dim);
  return factors.size() > 1 || !rule.has_factor(rule.result_tensor(0), factors[0]);
}

std::optional<LostSplit::Reshape> reshape_of(const Module& module, OpId id) {
  if (!id || !is_view(OpView(module, id))) return std::nullopt;
  const OpView op(module, id);
  return LostSplit::Reshape{.operand = loc_of(module, op.operand(0)),
                            .result = loc_of(module, op.result(0)),
                            .from = op.operand_type(0).shape,
                            .to = op.result_type().shape};
}

// The largest of the dims of the result that come from the dim.
int64_t regrouped_dim(const OpView& op, const ShardingRule& rule, size_t dim, int64_t parts) {
  const Dims& shape = op.result_type().shape;
  int64_t best = -1;
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool is_part = std::ranges::any_of(rule.dim(rule.result_tensor(0), d), [&](FactorId factor) {
      return std::ranges::find(rule.dim(0, dim), factor) != rule.dim(0, dim).end();
    });
    if (is_part && shape[d] >= parts && (best < 0 || shape[d] > shape[static_cast<size_t>(best)])) {
      best = static_cast<int64_t>(d);
    }
  }
  return best;
}

}  // namespace

std::optional<LostSplit> LostSplits::of(OpId op, const AxisRef& axis) {
  auto found = by_axis_.find(axis);
  if (found == by_axis_.end()) found = by_axis_.emplace(axis, follow(axis)).first;
  const int32_t lost = found->second.ops[op.index];
  return lost == kNone ? std::nullopt : std::optional(found->second.lost[static_cast<size_t>(lost)]);
}

LostSplits::AlongAxis LostSplits::follow(const AxisRef& axis) {
  AlongAxis along;
  along.values.resize(module_.value_count());
  along.ops.resize(module_.op_count(), kNone);
  walk(module_, [&](OpId id) {
    const OpView op(module_, id);
    if (is_loop(module_, id)) return enter_loop(along, op);
    if (!sharding_rule(op).empty() || op.regions().empty()) follow_op(along, op, axis);
  });
  return along;
}

void LostSplits::enter_loop(AlongAxis& along, const OpView& loop) const {
  for (const LoopParts::Carry& carry : loop_parts(loop).carries) {
    along.values[carry.argument.index] = carried(along, carry.entry);
    if (carry.tested) along.values[carry.tested.index] = carried(along, carry.entry);
  }
}

LostSplits::Carried LostSplits::carried(const AlongAxis& along, ValueId value) const {
  const OpId op = module_.value(value).op;
  if (!op || !is_loop(module_, op)) return along.values[value.index];
  // The body of a loop has been followed by now.
  for (const LoopParts::Carry& carry : loop_parts(OpView(module_, op)).carries) {
    if (carry.result == value) return carried(along, carry.next);
  }
  return {};
}

void LostSplits::carry(AlongAxis& along, const OpView& op, FactorId factor, int32_t lost) const {
  const ShardingRule& rule = sharding_rule(op);
  for (size_t r = 0; r < op.result_count(); ++r) {
    const size_t tensor = rule.result_tensor(r);
    for (size_t d = 0; d < rule.ndim(tensor); ++d) {
      if (rule.dim(tensor, d)[0] == factor) along.values[op.result(r).index] = {lost, d};
    }
  }
}

void LostSplits::follow_op(AlongAxis& along, const OpView& op, const AxisRef& axis) {
  for (size_t r = 0; r < op.result_count(); ++r) {
    if (split_dim(op.result(r), axis)) return;
  }
  const ShardingRule& rule = sharding_rule(op);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    int32_t& at_op = along.ops[op.id().index];
    if (const std::optional<size_t> dim = split_dim(op.operand(i), axis)) {
      const std::optional<LostSplit> lost = lost_at(op, i, *dim, axis);
      if (!lost) continue;
      at_op = static_cast<int32_t>(along.lost.size());
      along.lost.push_back(*lost);
      if (lost->instead < 0 || rule.empty()) continue;
      const size_t tensor = lost->kind == LostSplit::kReshape ? rule.result_tensor(0) : i;
      carry(along, op, rule.dim(tensor, static_cast<size_t>(lost->instead))[0], at_op);
    } else if (const Carried from = carried(along, op.operand(i)); from.lost != kNone && at_op == kNone) {
      at_op = from.lost;
      if (!rule.empty()) carry(along, op, rule.dim(i, from.dim)[0], at_op);
    }
  }
}

std::optional<size_t> LostSplits::split_dim(ValueId value, const AxisRef& axis) {
  const Placement* placement = placements_.find(placements_.declared(value));
  if (placement == nullptr || placement->mesh != placements_.mesh()) return std::nullopt;
  for (size_t d = 0; d < placement->dims.size(); ++d) {
    if (overlaps(placement->dims[d].axes, axis)) return d;
  }
  return std::nullopt;
}

std::optional<LostSplit> LostSplits::lost_at(const OpView& op, size_t operand, size_t dim, const AxisRef& axis) {
  const ShardingRule& rule = sharding_rule(op);
  const Placement& placement = *placements_.find(placements_.declared(op.operand(operand)));
  LostSplit lost{.name = op.name(),
                 .loc = op.loc(),
                 .value = loc_of(module_, op.operand(operand)),
                 .dim = dim,
                 .axes = placement.dims[dim].axes};
  const int64_t parts = std::max(product(lost.axes), axis.size);
  if (rule.empty()) {
    lost.kind = LostSplit::kNoRule;
  } else if (reads_row(op, rule, operand, dim)) {
    if (!is_in_loop(module_, op.id())) return std::nullopt;
    lost.kind = LostSplit::kRow;
    lost.reshape = reshape_of(module_, module_.value(op.operand(operand)).op);
    lost.instead = other_dim(op, operand, dim, parts);
  } else if (regroups(op, rule, dim)) {
    lost.kind = LostSplit::kReshape;
    lost.reshape = reshape_of(module_, op.id());
    lost.instead = regrouped_dim(op, rule, dim, parts);
  } else if (kind_of(rule, operand, dim) == FactorKind::kNeedReplication && !op.def().traits.movement) {
    lost.kind = LostSplit::kOp;
    lost.instead = other_dim(op, operand, dim, parts);
  } else {
    return std::nullopt;  // a sum over the dim, or a conflict
  }
  return lost;
}

// The first other dim of the operand that is whole and has enough elements: each device would read its part of it.
int64_t LostSplits::other_dim(const OpView& op, size_t operand, size_t dim, int64_t parts) {
  const ShardingRule& rule = sharding_rule(op);
  const Placement& placement = *placements_.find(placements_.declared(op.operand(operand)));
  const Dims& shape = op.operand_type(operand).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d == dim || shape[d] < parts || !placement.dims[d].axes.empty()) continue;
    const FactorId factor = rule.dim(operand, d)[0];
    const bool passes =
        rule.has_factor(rule.result_tensor(0), factor) && rule.factors()[factor].kind != FactorKind::kNeedReplication;
    if (passes) return static_cast<int64_t>(d);
  }
  return -1;
}

}  // namespace shardwise
