// SPDX-License-Identifier: Apache-2.0
//
// Replaces values where ops read them, op by op: works in a region that no function holds yet, in which a value's uses
// are unknown (rewrite.h needs them).
//
//   Redirection redirection(module);
//   redirection.add(a, b);
//   redirection.apply(op);       // the op, and the ops in its regions, read b in place of a
#pragma once

#include <unordered_map>

#include "shardwise/ir/module.h"

namespace shardwise {

// Each operand of the op becomes by(operand).
template <class By>
void map_operands(Module& module, OpId op, By&& by) {
  for (uint32_t i = 0; i < module.op(op).operand_count; ++i) {
    const ValueId operand = module.operands(op)[i];
    if (const ValueId other = by(operand); other != operand) module.set_operand(op, i, other);
  }
}

// Each result of the region becomes by(result).
template <class By>
void map_results(Module& module, RegionId region, By&& by) {
  for (uint32_t i = 0; i < module.region(region).results.size(); ++i) {
    const ValueId result = module.region(region).results[i];
    if (const ValueId other = by(result); other != result) module.set_region_result(region, i, other);
  }
}

class Redirection {
 public:
  explicit Redirection(Module& module) : module_(module) {}

  void add(ValueId from, ValueId to) {
    if (from != to) targets_[from] = to;
  }
  bool empty() const { return targets_.empty(); }
  const std::unordered_map<ValueId, ValueId>& targets() const { return targets_; }
  ValueId operator()(ValueId value) const;
  void apply(OpId op) const;
  void apply(RegionId region) const;  // its ops and results

 private:
  Module& module_;
  std::unordered_map<ValueId, ValueId> targets_;
};

}  // namespace shardwise
