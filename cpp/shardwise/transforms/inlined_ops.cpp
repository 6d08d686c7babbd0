// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/inlined_ops.h"

#include <unordered_map>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/ops/sharding/inlined_regions.h"

namespace shardwise {

ValueId append_constraint(Builder& builder, ValueId value, ShardingId sharding) {
  if (!sharding) return value;
  return create_sharding_constraint(builder, value, TensorSharding(builder.context().sharding(sharding)));
}

ShardingId sharding_of_call(const Module& module, ValueId result, size_t i, const Function* called) {
  const ShardingId sharding = module.value(result).sharding;
  const bool has_none = !sharding && called != nullptr && i < called->result_shardings.size();
  return has_none ? called->result_shardings[i] : sharding;
}

void drop_uncalled(Module& module, const std::set<std::string>& called) {
  std::unordered_map<std::string_view, const Function*> functions;
  for (const Function& function : module.functions) functions.emplace(function.name, &function);
  std::vector<const Function*> waiting;
  std::set<std::string, std::less<>> kept;
  const auto keep = [&](const Function& function) {
    if (kept.insert(function.name).second) waiting.push_back(&function);
  };
  keep(module.main());
  for (const Function& function : module.functions) {
    if (function.is_public() || !called.contains(function.name)) keep(function);
  }
  while (!waiting.empty()) {
    const RegionId body = waiting.back()->body;
    waiting.pop_back();
    walk(module, body, [&](OpId id) {
      if (is_call(module, id)) keep(*functions.at(callee_of(module, id)));
    });
  }
  std::erase_if(module.functions, [&](const Function& function) { return !kept.contains(function.name); });
}

bool is_inlined(const Module& module, OpId op) { return is_call(module, op) || is_inlined_region(module, op); }

std::vector<ValueId> append_inlined(Builder& builder, const OpView& op) {
  Module& module = builder.module();
  const Function* called = is_call(module, op.id()) ? &called_function(module, op.id()) : nullptr;
  const RegionId body = called != nullptr ? called->body : op.regions()[0];
  const size_t first = module.op_count();
  GraphCopy copy(module, module);
  const std::vector<ValueId> arguments = module.region(body).arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    copy.map(arguments[i], append_constraint(builder, op.operand(i), module.value(arguments[i]).sharding));
  }
  copy.ops(body, builder.region());
  mark_as(module, op.id(), first);
  std::vector<ValueId> results = module.region(body).results;
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = append_constraint(builder, copy(results[i]), sharding_of_call(module, op.result(i), i, called));
  }
  return results;
}

}  // namespace shardwise
