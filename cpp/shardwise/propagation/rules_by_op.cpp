// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/rules_by_op.h"

#include <span>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {

uint32_t RulesByOp::find(OpId id) {
  const OpView op(module_, id);
  const ShardyOp& shardy = shardy_[op.def()];
  types_.clear();
  for (const ValueId operand : op.operands()) types_.push_back(module_.value(operand).type);
  for (size_t i = 0; i < op.result_count(); ++i) types_.push_back(module_.value(op.result(i)).type);
  bool neighbors = false;
  if (shardy.looks_around != nullptr) {
    neighbors = shardy.looks_around(op, neighbors_);
    // The answer becomes a part of the key, since equal ops may have different neighbors.
    types_.push_back(TypeId{neighbors ? 1U : 0U});
  }
  // Types and attributes do not distinguish regions; the op's own rule does.
  const void* key = &op.def();
  if (!op.regions().empty()) key = &sharding_rule(op);
  const uint32_t attrs = module_.op(id).attrs.index;
  if (const uint32_t* known = cache_.find(key, attrs, types_)) return *known;
  rules_.push_back(&make(op, shardy, neighbors));
  const auto made = static_cast<uint32_t>(rules_.size());
  return *cache_.insert(key, attrs, types_, std::span(&made, 1));
}

const ShardingRule& RulesByOp::make(const OpView& op, const ShardyOp& shardy, bool neighbors) {
  if (const auto* attribute = op.attrs().find<RuleAttr>(text_words::kShardingRule)) {
    verify(*attribute, op);
    return keep(to_rule(*attribute));
  }
  static const ShardingRule kNone;
  // An op that moves a value does not tie the shardings before and after it.
  const Traits& traits = op.def().traits;
  if (traits.reshard || traits.collective != CollectiveKind::kNone) return kNone;
  if (shardy.rule == nullptr) return sharding_rule(op);
  return keep(shardy.rule(op, {.neighbors = neighbors, .conservative = options_.conservative}));
}

const ShardingRule& RulesByOp::identity(TypeId type, size_t operands) {
  const auto [known, is_new] = identities_.try_emplace({type, operands});
  if (is_new) {
    const std::vector<Dims> shapes(operands + 1, module_.context().type(type).shape);
    known->second = RuleBuilder(shapes, operands).pointwise().build();
  }
  return known->second;
}

bool is_blocked_by_option(const Module& module, const CompileOptions& options, OpId op, FactorId factor) {
  if (!options.conservative) return false;  // no other option affects rules
  const auto is_blocked = [&](const CompileOptions& by) { return RulesByOp(module, by)[op].factors()[factor].blocked; };
  return is_blocked(options) && !is_blocked({});
}

}  // namespace shardwise
