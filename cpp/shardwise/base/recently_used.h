// SPDX-License-Identifier: Apache-2.0
//
// A cache of bounded size that evicts the least recently used value.
//
//   RecentlyUsed<Key, Plan> plans(64);        // finds hash_value(const Key&)
//   plans.find(key)                           // nullptr
//   plans.keep(key, plan);
//   plans.find(key)                           // plan
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace shardwise {

// Any number of threads may use it.
template <class Key, class Value>
class RecentlyUsed {
 public:
  using Kept = std::shared_ptr<const Value>;

  explicit RecentlyUsed(size_t most) : most_(most) {}

  Kept find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    const auto known = entries_.find(key);
    if (known == entries_.end()) return nullptr;
    // Moves the key to the front without a copy, so that the places of all entries stay valid.
    keys_.splice(keys_.begin(), keys_, known->second.place);
    return known->second.value;
  }

  void keep(Key key, Kept value) {
    const std::scoped_lock lock(mutex_);
    const auto [entry, is_new] = entries_.try_emplace(std::move(key), Entry{std::move(value), {}});
    // Another thread has made it meanwhile.
    if (!is_new) return;
    entry->second.place = keys_.insert(keys_.begin(), &entry->first);
    if (keys_.size() <= most_) return;
    entries_.erase(entries_.find(*keys_.back()));
    keys_.pop_back();
  }

  size_t size() const {
    const std::scoped_lock lock(mutex_);
    return keys_.size();
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const { return hash_value(key); }
  };
  struct Entry {
    Kept value;
    typename std::list<const Key*>::iterator place;
  };
  const size_t most_;
  mutable std::mutex mutex_;
  std::list<const Key*> keys_;  // of the entries, used last first
  std::unordered_map<Key, Entry, Hash> entries_;
};

}  // namespace shardwise
