// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/live_carries.h"

#include <algorithm>
#include <utility>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {

void LiveCarries::reach(ValueId value) {
  if (reached_[value.index]) return;
  reached_[value.index] = true;
  open_.push_back(value);
}

std::vector<bool> LiveCarries::find() {
  for (const RegionId region : module_.regions(loop_)) need_effects(region);
  for (uint32_t i = 0; i < live_.size(); ++i) {
    // Used after the loop. The others live only if these, an effect or the condition depend on them.
    if (!module_.uses(module_.result(loop_, i)).empty()) mark(i);
  }
  while (!open_.empty()) {
    const ValueId next = open_.back();
    open_.pop_back();
    follow(next);
  }
  return std::move(live_);
}

void LiveCarries::follow(ValueId id) {
  // A value from around the loop depends on no carry.
  if (!std::ranges::any_of(module_.regions(loop_), [&](RegionId region) { return is_inside(module_, id, region); }))
    return;
  const Value& value = module_.value(id);
  if (value.op) {
    need(value.op);
  } else if (module_.region(value.region).op == loop_) {
    // An argument of the condition or of the body: both number the carries alike.
    mark(value.index);
  }
  // An argument of an op inside: the op is needed already, and so are all its operands.
}

void LiveCarries::mark(uint32_t carry) {
  if (carry >= live_.size() || live_[carry]) return;  // an argument that is no carry
  // A carry is its operand in trip 0 and the body's result after that, so whatever the result reads lives, too.
  live_[carry] = true;
  reach(parts_.carries[carry].next);
}

void LiveCarries::need(OpId id) {
  if (needed_[id.index]) return;
  needed_[id.index] = true;
  for (const ValueId operand : module_.operands(id)) reach(operand);
  for (const RegionId region : module_.regions(id)) {
    for (const ValueId result : module_.region(region).results) reach(result);
    need_effects(region);
  }
}

// An effect runs whether or not its results are used, and so do the ops around it.
void LiveCarries::need_effects(RegionId region) {
  for (const OpId op : module_.region(region).ops) {
    if (effects_(op)) need(op);
  }
}

}  // namespace shardwise
