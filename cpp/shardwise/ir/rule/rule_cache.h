// SPDX-License-Identifier: Apache-2.0
//
// The sharding rules of a context, each made once: a rule depends only on the op's definition, attributes, types and
// regions, which make its key. op_def.h has the lookup by op:
//
//   const ShardingRule& rule = sharding_rule(op);          // made at the first call for an op like this one
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/ids.h"
#include "shardwise/ir/rule/sharding_rule.h"

namespace shardwise {

struct OpDef;

struct RuleKey {
  const OpDef* def = nullptr;
  AttrsId attrs;
  std::vector<TypeId> types;             // of operands and results
  std::vector<const OpDef*> inner_defs;  // of the ops in its regions
  std::vector<uint32_t> inner;           // their attributes, and their operands relative to the region's arguments
  friend bool operator==(const RuleKey&, const RuleKey&) = default;
};

// Any number of threads may use it at once. Rules stay where they are as long as the cache lives.
class RuleCache {
 public:
  const ShardingRule* find(const RuleKey& key) const;       // null: there is none yet
  const ShardingRule& add(RuleKey key, ShardingRule rule);  // if there is one already, that one stays

 private:
  struct Hash {
    size_t operator()(const RuleKey& key) const;
  };
  mutable std::mutex mutex_;
  std::unordered_map<RuleKey, std::unique_ptr<const ShardingRule>, Hash> rules_;
};

}  // namespace shardwise
