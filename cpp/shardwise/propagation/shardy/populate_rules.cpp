// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/populate_rules.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/rule/rule_attribute.h"
#include "shardwise/ir/text_words.h"
#include "shardwise/propagation/rules_by_op.h"

namespace shardwise {
namespace {

// Shardy's registry has no rule for these ops either.
bool places_values(const OpDef& def) {
  const Traits& traits = def.traits;
  return def.flow != nullptr || traits.reshard || traits.data_flow_edge || traits.barrier || traits.sharding_group ||
         traits.collective != CollectiveKind::kNone;
}

void populate(Module& module, OpId id, RulesByOp& rules) {
  const OpView op(module, id);
  if (places_values(op.def()) || op.operand_count() == 0 || op.result_count() == 0) return;
  if (op.attrs().find(text_words::kShardingRule) != nullptr) return;
  const ShardingRule& rule = rules[id];
  if (rule.empty()) return;
  // Not custom, so that drop_populated_rules takes it out again.
  module.set_attribute(id, text_words::kShardingRule, to_attribute(rule, false));
}

}  // namespace

Module populate_rules(Module module, PassContext& context) {
  RulesByOp rules(module, context.options);
  walk<Order::kRegionsFirst>(module, [&](OpId id) { populate(module, id, rules); });
  return module;
}

void drop_populated_rules(Module& module) {
  walk(module, [&](OpId id) {
    const RuleAttr* rule = module.attrs(id).find<RuleAttr>(text_words::kShardingRule);
    if (rule == nullptr || rule->custom) return;
    Attrs attrs = module.attrs(id);
    attrs.erase(text_words::kShardingRule);
    module.op(id).attrs = module.context().intern(attrs);
  });
}

}  // namespace shardwise
