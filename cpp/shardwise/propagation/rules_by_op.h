// SPDX-License-Identifier: Apache-2.0
//
// The sharding rule that propagation follows at an op (Context::propagation_rule), found once for equal ops:
//
//   %1 = dot %x, %w1;  %2 = dot %1, %w2      of equal types and attributes: one lookup, then an index by op
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/propagation/run_cache.h"

namespace shardwise {

class RulesByOp {
 public:
  RulesByOp(const Module& module, bool conservative)
      : module_(module), conservative_(conservative), places_(module.op_count(), 0) {}

  const ShardingRule& operator[](OpId id) {
    uint32_t& place = places_[id.index];
    if (place == 0) place = find(id);
    return *rules_[place - 1];
  }

 private:
  uint32_t find(OpId id);
  uint32_t add(const OpView& op);

  const Module& module_;
  bool conservative_;
  std::vector<uint32_t> places_;  // by op: 1 + its place in rules_, 0: not asked for yet
  std::vector<const ShardingRule*> rules_;
  RunCache<TypeId> cache_;
  std::vector<TypeId> types_;
};

}  // namespace shardwise
