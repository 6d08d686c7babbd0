// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/rule_cache.h"

#include <functional>
#include <utility>

namespace shardwise {

size_t RuleCache::Hash::operator()(const RuleKey& key) const {
  size_t seed = hash_combine(std::hash<const OpDef*>()(key.def), key.attrs.index);
  for (const TypeId type : key.types) seed = hash_combine(seed, type.index);
  for (const OpDef* def : key.inner_defs) seed = hash_combine(seed, std::hash<const OpDef*>()(def));
  for (const uint32_t word : key.inner) seed = hash_combine(seed, word);
  return seed;
}

const ShardingRule* RuleCache::find(const RuleKey& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = rules_.find(key);
  return found == rules_.end() ? nullptr : found->second.get();
}

const ShardingRule& RuleCache::add(RuleKey key, ShardingRule rule) {
  auto made = std::make_unique<const ShardingRule>(std::move(rule));
  const std::scoped_lock lock(mutex_);
  return *rules_.try_emplace(std::move(key), std::move(made)).first->second;
}

}  // namespace shardwise
