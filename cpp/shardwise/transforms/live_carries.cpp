// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/live_carries.h"

#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {

void LiveCarries::reach(ValueId value) {
  if (reached_[value.index]) return;
  reached_[value.index] = true;
  open_.push_back(value);
}

std::vector<bool> LiveCarries::find() {
  for (const RegionId region : module_.regions(loop_)) {
    walk(module_, region, [&](OpId id) {
      const OpView op(module_, id);
      // An effect runs in each trip, whether or not its results are used.
      if (op.def().has_side_effect(op)) reach_operands(id);
    });
  }
  for (uint32_t i = 0; i < live_.size(); ++i) {
    // Used after the loop. The others live only if these, an effect or the condition depend on them.
    if (!module_.uses(module_.result(loop_, i)).empty()) mark(i);
  }
  while (!open_.empty()) {
    const ValueId next = open_.back();
    open_.pop_back();
    follow(module_.value(next));
  }
  return std::move(live_);
}

void LiveCarries::follow(const Value& value) {
  if (value.op) {
    reach_operands(value.op);
  } else if (module_.region(value.region).op == loop_) {
    // An argument of the condition or of the body: both number the carries alike.
    mark(value.index);
  } else if (module_.region(value.region).op) {
    // An argument of a loop inside: all operands of that loop count. This may keep too much, but never too little.
    reach_operands(module_.region(value.region).op);
  }
}

void LiveCarries::mark(uint32_t carry) {
  if (carry >= live_.size() || live_[carry]) return;  // an argument behind the carries depends on none
  // A carry is its operand in trip 0 and the body's result after that, so whatever the result reads lives, too.
  live_[carry] = true;
  reach(module_.region(module_.regions(loop_)[1]).results[carry]);
}

void LiveCarries::reach_operands(OpId id) {
  for (const ValueId operand : module_.operands(id)) reach(operand);
  for (const RegionId region : module_.regions(id)) {
    for (const OpId inner : module_.region(region).ops) reach_operands(inner);
    for (const ValueId result : module_.region(region).results) reach(result);
  }
}

}  // namespace shardwise
