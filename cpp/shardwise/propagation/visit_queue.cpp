// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/visit_queue.h"

#include "shardwise/ir/op_def.h"

namespace shardwise {

bool VisitQueue::remove_if_unused(OpId id) {
  const uint32_t count = graph_.result_count(id);
  // An op without results is there for an effect, such as sdy.sharding_group.
  if (count == 0) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (graph_.uses(ValueId{graph_.first_result(id).index + i}) != 0) return false;
  }
  if (kept_(id)) return false;
  remove(id);
  return true;
}

void VisitQueue::remove(OpId id) {
  states_[id.index].dead = true;
  for (RegionId inner : module_.regions(id)) {
    for (ValueId result : module_.region(inner).results) {
      graph_.drop_use(result);
      if (const OpId defining = module_.value(result).op) states_[defining.index].may_be_unused = true;
    }
    // They go, too: their operands from around the region lose a user each.
    for (OpId op : module_.region(inner).ops) {
      if (!states_[op.index].dead) remove(op);
    }
  }
  for (ValueId operand : module_.operands(id)) {
    graph_.drop_use(operand);
    const OpId defining = module_.value(operand).op;
    if (!defining) continue;
    states_[defining.index].may_be_unused = true;
    if (has_at_most_one_user(operand)) push(defining);
  }
}

// MLIR's rewriter revisits ops that may have become dead; Shardy inherits this order.
bool VisitQueue::has_at_most_one_user(ValueId value) const {
  OpId only;
  uint32_t uses = 0;
  for (OpId user : graph_.users(value)) {
    if (states_[user.index].dead || graph_.role(user).is_edge) continue;
    if (only && user != only) return false;
    only = user;
    ++uses;
  }
  return !only || graph_.uses(value) <= uses;  // what is left are results of the region
}

}  // namespace shardwise
