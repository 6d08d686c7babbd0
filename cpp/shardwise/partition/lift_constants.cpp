// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/lift_constants.h"

#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

bool is_lifted(const Module& module, OpId id) {
  const Operation& op = module.op(id);
  if (!op.def->traits.constant_like || op.operand_count != 0) return false;
  const auto* dense = module.attrs(id).find<DenseAttr>("value");
  return dense != nullptr && !dense->data.is_splat();
}

// Takes the constants out of the regions that run in `region`. The regions of other ops are functions of scalars.
void take_constants(Module& module, RegionId region, bool is_body, std::vector<OpId>& taken) {
  std::vector<OpId> kept;
  for (const OpId id : std::vector<OpId>(module.region(region).ops)) {
    if (!is_body && is_lifted(module, id)) {
      taken.push_back(id);
      continue;
    }
    kept.push_back(id);
    if (!module.op(id).def->is_control_flow()) continue;
    for (const RegionId inner : module.regions(id)) take_constants(module, inner, false, taken);
  }
  module.region(region).ops = std::move(kept);
}

}  // namespace

int64_t lift_constants(Module& module) {
  int64_t count = 0;
  for (const Function& function : module.functions) {
    std::vector<OpId> taken;
    take_constants(module, function.body, true, taken);
    for (const OpId id : taken) module.op(id).parent = function.body;
    std::vector<OpId>& ops = module.region(function.body).ops;
    ops.insert(ops.begin(), taken.begin(), taken.end());
    count += static_cast<int64_t>(taken.size());
  }
  return count;
}

}  // namespace shardwise
