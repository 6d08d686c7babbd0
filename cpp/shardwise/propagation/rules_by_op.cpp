// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/rules_by_op.h"

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Some rules look into regions, or at other ops: types and attributes do not tell them apart.
uint32_t RulesByOp::find(OpId id) {
  const OpView op(module_, id);
  if (!op.regions().empty() || op.def().traits.rule_reads_operand_ops) return add(op);
  types_.clear();
  for (const ValueId operand : op.operands()) types_.push_back(module_.value(operand).type);
  for (size_t i = 0; i < op.result_count(); ++i) types_.push_back(module_.value(op.result(i)).type);
  const uint32_t attrs = module_.op(id).attrs.index;
  if (const uint32_t* known = cache_.find(&op.def(), attrs, types_)) return *known;
  const uint32_t made = add(op);
  return *cache_.insert(&op.def(), attrs, types_, std::span(&made, 1));
}

uint32_t RulesByOp::add(const OpView& op) {
  rules_.push_back(&module_.context().propagation_rule(op, conservative_));
  return static_cast<uint32_t>(rules_.size());
}

}  // namespace shardwise
