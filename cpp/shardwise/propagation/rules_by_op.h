// SPDX-License-Identifier: Apache-2.0
//
// The sharding rule that propagation follows at an op: its attribute sdy.sharding_rule, else the rule that Shardy gives
// it (shardy/rules.h), else the op's own. Other engines use the op's own rule, because it describes the computation.
// Equal ops share one rule:
//
//   %1 = dot %x, %w1;  %2 = dot %1, %w2      of equal types and attributes: one lookup, then an index by op
//
// Throws ShardingError for an attribute that does not fit its op.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/propagation/run_cache.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {

class RulesByOp {
 public:
  RulesByOp(const Module& module, bool conservative)
      : module_(module), conservative_(conservative), neighbors_(module), places_(module.op_count(), 0) {}

  const ShardingRule& operator[](OpId id) {
    uint32_t& place = places_[id.index];
    if (place == 0) place = find(id);
    return *rules_[place - 1];
  }

 private:
  uint32_t find(OpId id);
  const ShardingRule& make(const OpView& op, const ShardyOp& shardy, bool neighbors);
  const ShardingRule& keep(ShardingRule rule) { return own_.emplace_back(std::move(rule)); }

  const Module& module_;
  const ShardyOps& shardy_ = ShardyOps::table();
  bool conservative_;
  Neighbors neighbors_;
  std::vector<uint32_t> places_;  // by op: 1 + its place in rules_, 0: not asked for yet
  std::vector<const ShardingRule*> rules_;
  std::deque<ShardingRule> own_;  // those that the context does not have
  RunCache<TypeId> cache_;
  std::vector<TypeId> types_;
};

}  // namespace shardwise
