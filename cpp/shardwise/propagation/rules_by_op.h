// SPDX-License-Identifier: Apache-2.0
//
// The sharding rule that propagation follows at an op: its attribute sdy.sharding_rule, else the rule that Shardy gives
// it (shardy/rules.h), else the op's own. Other engines use the op's own rule, because it describes the computation.
// Equal ops share one rule:
//
//   %1 = dot %x, %w1;  %2 = dot %1, %w2      of equal types and attributes: one lookup, then an index by op
//
// And the rules of values that pass through unchanged: a data-flow edge with its sources, main with a returned value.
//
//   rules.identity(type, 2)                  tensor<8x4xf32>: ([i, j], [i, j])->([i, j]) {i=8, j=4}
//
// Throws ShardingError for an attribute that does not fit its op.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "shardwise/ir/compile_options.h"
#include "shardwise/ir/module.h"
#include "shardwise/propagation/run_cache.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {

class RulesByOp {
 public:
  RulesByOp(const Module& module, const CompileOptions& options)
      : module_(module), options_(options), neighbors_(module), places_(module.op_count(), 0) {}

  const ShardingRule& operator[](OpId id) {
    uint32_t& place = places_[id.index];
    if (place == 0) place = find(id);
    return *rules_[place - 1];
  }

  // The rule of that many operands and one result, all of one type.
  const ShardingRule& identity(TypeId type, size_t operands);

 private:
  uint32_t find(OpId id);
  const ShardingRule& make(const OpView& op, const ShardyOp& shardy, bool neighbors);
  const ShardingRule& keep(ShardingRule rule) { return own_.emplace_back(std::move(rule)); }

  const Module& module_;
  const ShardyOps& shardy_ = ShardyOps::table();
  CompileOptions options_;
  Neighbors neighbors_;
  std::vector<uint32_t> places_;  // by op: 1 + its place in rules_, 0: not asked for yet
  std::vector<const ShardingRule*> rules_;
  std::deque<ShardingRule> own_;  // those that the context does not have
  std::map<std::pair<TypeId, size_t>, ShardingRule> identities_;
  RunCache<TypeId> cache_;
  std::vector<TypeId> types_;
};

// Whether the rule of the op blocks the factor, but would not with the default options.
bool is_blocked_by_option(const Module& module, const CompileOptions& options, OpId op, FactorId factor);

}  // namespace shardwise
