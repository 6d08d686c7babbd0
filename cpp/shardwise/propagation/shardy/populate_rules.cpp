// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/populate_rules.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/rule_attribute.h"
#include "shardwise/ir/text_words.h"

namespace shardwise {
namespace {

bool places_values(const OpDef& def) {
  const Traits& traits = def.traits;
  return def.flow != nullptr || traits.reshard || traits.data_flow_edge || traits.barrier || traits.sharding_group ||
         traits.collective != CollectiveKind::kNone;
}

void populate(Module& module, RegionId region, bool conservative) {
  Context& context = module.context();
  for (const OpId id : module.region(region).ops) {
    const OpView op(module, id);
    for (const RegionId inner : op.regions()) populate(module, inner, conservative);
    if (places_values(op.def()) || op.operand_count() == 0 || op.result_count() == 0) continue;
    const ShardingRule& rule = conservative ? context.cautious_rule(op) : context.sharding_rule(op);
    if (rule.empty() || op.attrs().find(text_words::kShardingRule) != nullptr) continue;
    Attrs attrs = op.attrs();
    attrs.set(text_words::kShardingRule, to_attribute(rule, false));
    module.op(id).attrs = context.intern(attrs);
  }
}

}  // namespace

Module populate_rules(Module module, PassContext& context) {
  for (const Function& function : module.functions) populate(module, function.body, context.options.conservative);
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
