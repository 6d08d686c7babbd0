// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/dce.h"

#include <algorithm>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// From the last op to the first: when an op is reached, all its users have been.
int64_t UnusedOps::sweep(RegionId region) {
  for (const ValueId result : module_.region(region).results) used_[result.index] = true;
  std::vector<OpId>& ops = module_.region(region).ops;
  std::vector<OpId> kept;
  kept.reserve(ops.size());
  int64_t removed = 0;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    if (!is_needed(*op)) {
      module_.drop_uses(*op);
      ++removed;
      continue;
    }
    for (const ValueId operand : module_.operands(*op)) used_[operand.index] = true;
    // Also marks the values from around that the regions read, before their ops are reached.
    for (const RegionId inner : module_.regions(*op)) removed += sweep(inner);
    kept.push_back(*op);
  }
  ops.assign(kept.rbegin(), kept.rend());
  return removed;
}

bool UnusedOps::is_needed(OpId id) {
  const Operation& op = module_.op(id);
  for (uint32_t i = 0; i < op.result_count; ++i) {
    if (used_[op.first_result + i]) return true;
  }
  return effects_(id);
}

UnusedConstraints unused_constraints(const Module& module) {
  return module.stage < Stage::kPropagated ? UnusedConstraints::kKeep : UnusedConstraints::kRemove;
}

bool OwnEffect::operator()(OpId id) const {
  const OpDef& def = *module->op(id).def;
  if (def.traits.constraint && constraints == UnusedConstraints::kKeep) return true;
  return !def.is_call() && def.has_side_effect(OpView(*module, id));
}

int64_t dce(Module& module, UnusedConstraints constraints) {
  UnusedOps unused(module, constraints);
  int64_t removed = 0;
  for (const Function& function : module.functions) removed += unused.sweep(function.body);
  return removed;
}

}  // namespace shardwise
