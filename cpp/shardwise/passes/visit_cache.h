// SPDX-License-Identifier: Apache-2.0
//
// What an op does to its shardings depends only on its rule and on the shardings, and both are interned: so equal
// visits are worked out once, and the 36th layer of a model costs 36 lookups.
//
//   cache.find(rule, {s1, none, s1})   ->  {s1, s1, s1}     or null the first time
//
// Entries are runs in one array: rule, the ids before, the ids after. The table holds where they start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "shardwise/ir/ids.h"
#include "shardwise/ir/sharding_rule.h"

namespace shardwise {

class VisitCache {
 public:
  VisitCache() : slots_(1024, 0), runs_(1, 0) {}

  // The ids after the visit; null when it is new. Valid until the next insert.
  const uint32_t* find(const ShardingRule* rule, std::span<const ShardingId> before) {
    hash_ = hash(rule, before);
    for (size_t slot = hash_ & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot] == 0) return nullptr;
      if (const uint32_t* after = match(slots_[slot], rule, before)) return after;
    }
  }

  // Of the visit that `find` has just missed.
  void insert(const ShardingRule* rule, std::span<const ShardingId> before, std::span<const ShardingId> after) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    place(hash_, static_cast<uint32_t>(runs_.size()));
    const auto bits = reinterpret_cast<uintptr_t>(rule);
    runs_.push_back(static_cast<uint32_t>(hash_));
    runs_.push_back(static_cast<uint32_t>(bits));
    runs_.push_back(static_cast<uint32_t>(bits >> 32));
    runs_.push_back(static_cast<uint32_t>(before.size()));
    for (ShardingId id : before) runs_.push_back(id.index);
    for (ShardingId id : after) runs_.push_back(id.index);
    ++count_;
  }

  size_t size() const { return count_; }

 private:
  static constexpr size_t kHeader = 4;

  static size_t hash(const ShardingRule* rule, std::span<const ShardingId> before) {
    uint64_t value = reinterpret_cast<uintptr_t>(rule) >> 4;
    for (ShardingId id : before) value = (value ^ id.index) * 0x9e3779b97f4a7c15ULL + (value >> 29);
    return static_cast<uint32_t>(value ^ (value >> 32));
  }

  const uint32_t* match(uint32_t start, const ShardingRule* rule, std::span<const ShardingId> before) const {
    const uint32_t* run = runs_.data() + start;
    const auto bits = reinterpret_cast<uintptr_t>(rule);
    if (run[1] != static_cast<uint32_t>(bits) || run[2] != static_cast<uint32_t>(bits >> 32)) return nullptr;
    if (run[3] != before.size()) return nullptr;
    for (size_t i = 0; i < before.size(); ++i) {
      if (run[kHeader + i] != before[i].index) return nullptr;
    }
    return run + kHeader + before.size();
  }

  void place(size_t hash_of_run, uint32_t start) {
    size_t slot = hash_of_run & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = start;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (size_t start = 1; start < runs_.size(); start += kHeader + 2 * runs_[start + 3]) {
      place(runs_[start], static_cast<uint32_t>(start));
    }
  }

  std::vector<uint32_t> slots_;  // 0: free, else the start of a run
  std::vector<uint32_t> runs_;   // each: hash, rule (two words), n, n ids before, n ids after
  size_t hash_ = 0;
  size_t count_ = 0;
};

}  // namespace shardwise
