// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/rules.h"

#include <algorithm>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/ops/registry.h"

namespace shardwise {
namespace {

// A bitcast to elements of the same size is elementwise.
Precedence precedence_of_bitcast(const OpView& op) {
  return op.operand_type(0).ndim() == op.result_type().ndim() ? Precedence::kEarly : Precedence::kInTurn;
}

constexpr ShardyOp kLayoutOps[] = {
    {.op = "stablehlo.reshape", .precedence = Precedence::kEarly, .keeps_constants = true},
    {.op = "stablehlo.transpose", .precedence = Precedence::kEarly},
    {.op = "stablehlo.broadcast_in_dim", .precedence = Precedence::kBackwardFirst, .keeps_constants = true},
    {.op = "stablehlo.bitcast_convert", .precedence_of = precedence_of_bitcast},
    {.op = "sdy.func_data_flow_edge", .keeps_constants = true},
    {.op = "sdy.propagation_barrier", .keeps_constants = true},
    {.op = "sdy.named_computation", .keeps_constants = true},
    {.op = "shardwise.checkpoint", .keeps_constants = true},
    {.op = "shardwise.custom_derivative", .keeps_constants = true},
};

}  // namespace

const OpDef* Neighbors::maker(const OpView& op, size_t operand) {
  const Module& module = op.module();
  const OpId maker = module.value(op.operand(operand)).op;
  return maker ? module.op(maker).def : nullptr;
}

bool Neighbors::has_user(const OpView& op, const OpDef& user) {
  // One walk serves all ops that ask for the same user.
  if (user_ != &user) {
    user_ = &user;
    used_.clear();
    walk(module_, [&](OpId id) {
      if (module_.op(id).def != &user) return;
      for (const ValueId operand : module_.operands(id)) used_.insert(operand);
    });
  }
  return used_.contains(op.result());
}

ShardingRule edited_rule(const OpView& op, const FactorEdit& edit) {
  const ShardingRule& own = sharding_rule(op);
  RuleBuilder rule(op);
  std::vector<std::optional<FactorId>> ids;  // by factor of the op's own rule
  for (size_t f = 0; f < own.factors().size(); ++f) {
    std::optional<FactorId>& id = ids.emplace_back();
    const std::optional<Factor> factor = edit(own.factors()[f], f);
    if (!factor) continue;
    const auto& [size, kind, reducer, blocked] = *factor;
    id = kind == FactorKind::kReduction ? rule.reduction(size, reducer, blocked) : rule.factor(size, kind, blocked);
  }
  own.for_each_dim([&](size_t t, size_t d, std::span<const FactorId> factors) {
    for (const FactorId factor : factors) {
      if (ids[factor]) rule.map(t, d, *ids[factor]);
    }
  });
  return rule.build();
}

ShardyOps::ShardyOps() {
  for (const std::span<const ShardyOp> family : {std::span<const ShardyOp>(kLayoutOps), shardy_slicing_ops(),
                                                 shardy_window_ops(), shardy_custom_call_ops(), shardy_linalg_ops()}) {
    for (const ShardyOp& row : family) {
      // Names are looked up once. A misspelled one fails when the table is made, in any test.
      const auto def = std::ranges::find(all_ops(), row.op, &OpDef::name);
      check_internal(def != all_ops().end(), "a row is of a registered op");
      insert(**def, row);
    }
  }
}

void ShardyOps::insert(const OpDef& def, const ShardyOp& row) {
  size_t slot = first_slot(def);
  while (slots_[slot].def != nullptr) {
    check_internal(slots_[slot].def != &def, "an op has one row");
    slot = (slot + 1) % kSlots;
  }
  slots_[slot] = {&def, &row};
}

const ShardyOps& ShardyOps::table() {
  // Never destroyed, like the list of ops: threads may compile while the process exits.
  static const auto* table = new ShardyOps;
  return *table;
}

}  // namespace shardwise
