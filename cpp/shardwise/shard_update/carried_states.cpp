// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/carried_states.h"

#include <algorithm>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/shard_update/update_graph.h"

namespace shardwise {
namespace {

// Behind elementwise ops of one operand.
ValueId changed_in_place(const Module& module, ValueId value) {
  while (module.value(value).op) {
    const OpView op(module, module.value(value).op);
    if (op.operands().size() != 1 || !is_elementwise(op)) break;
    value = op.operand(0);
  }
  return value;
}

bool is_loop(const Module& module, OpId op) { return op && module.op(op).def->regions == Regions::kLoop; }

}  // namespace

ValueId argument_behind(const Module& module, ValueId state) {
  const RegionId main = module.main().body;
  for (ValueId value = changed_in_place(module, state);;) {
    if (module.value(value).op) return {};
    const RegionId region = module.value(value).region;
    if (region == main) return value;
    const OpId loop = module.region(region).op;
    if (!is_loop(module, loop)) return {};
    const LoopParts parts = loop_parts(OpView(module, loop));
    const auto carry = std::ranges::find(parts.carries, value, &LoopParts::Carry::argument);
    if (carry == parts.carries.end()) return {};
    value = changed_in_place(module, carry->entry);
  }
}

std::vector<ValueId> states_behind(const Module& module, ValueId result) {
  std::vector<ValueId> states;
  for (ValueId value = changed_in_place(module, result);; value = changed_in_place(module, value)) {
    const OpId loop = module.value(value).op;
    if (!is_loop(module, loop)) return states;
    const LoopParts parts = loop_parts(OpView(module, loop));
    const auto carry = std::ranges::find(parts.carries, value, &LoopParts::Carry::result);
    if (carry == parts.carries.end()) return states;
    states.push_back(carry->argument);
    value = carry->next;
  }
}

}  // namespace shardwise
