// SPDX-License-Identifier: Apache-2.0
//
// Caches results by an object, one of its variants, and a run of interned ids. Layers of a model are alike, so the 36th
// layer costs lookups only. Propagation keeps two caches:
//
//   visits.find(rule, participation, {s1, none, s1})   ->  {s1, s1, s1}     the effect of an op on its shardings
//   rules.find(op_def, attributes, {t1, t2, t3})       ->  {4}              which rule it has
//
// and null the first time. Entries are runs in one array: a header, the ids, the result. The table stores where they
// start.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardwise {

template <class Id>
class RunCache {
 public:
  RunCache() : slots_(1024, 0), runs_(1, 0) {}

  // The cached result; null if there is none yet. Valid until the next insert.
  const uint32_t* find(const void* object, uint32_t variant, std::span<const Id> ids) {
    hash_ = hash(object, variant, ids);
    for (size_t slot = hash_ & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot] == 0) return nullptr;
      if (const uint32_t* answer = match(slots_[slot], object, variant, ids)) return answer;
    }
  }

  // Stores the result for the key that `find` just missed. Returns what the next `find` of it returns.
  const uint32_t* insert(const void* object, uint32_t variant, std::span<const Id> ids,
                         std::span<const uint32_t> answer) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const size_t start = runs_.size();
    place(hash_, static_cast<uint32_t>(start));
    const auto bits = reinterpret_cast<uintptr_t>(object);
    for (const size_t word : {hash_, size_t{bits & UINT32_MAX}, size_t{bits >> 32}, size_t{variant}, ids.size(),
                              kHeader + ids.size() + answer.size()}) {
      runs_.push_back(static_cast<uint32_t>(word));
    }
    for (const Id id : ids) runs_.push_back(id.index);
    runs_.insert(runs_.end(), answer.begin(), answer.end());
    ++count_;
    return runs_.data() + start + kHeader + ids.size();
  }

  size_t size() const { return count_; }

 private:
  static constexpr size_t kHeader = 6;  // hash, object (two words), variant, number of ids, length of the run

  static size_t hash(const void* object, uint32_t variant, std::span<const Id> ids) {
    uint64_t value = (reinterpret_cast<uintptr_t>(object) >> 4) ^ (uint64_t{variant} << 40);
    for (const Id id : ids) value = (value ^ id.index) * 0x9e3779b97f4a7c15ULL + (value >> 29);
    return static_cast<uint32_t>(value ^ (value >> 32));
  }

  const uint32_t* match(uint32_t start, const void* object, uint32_t variant, std::span<const Id> ids) const {
    const uint32_t* run = runs_.data() + start;
    const auto bits = reinterpret_cast<uintptr_t>(object);
    if (run[1] != static_cast<uint32_t>(bits) || run[2] != static_cast<uint32_t>(bits >> 32)) return nullptr;
    if (run[3] != variant || run[4] != ids.size()) return nullptr;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (run[kHeader + i] != ids[i].index) return nullptr;
    }
    return run + kHeader + ids.size();
  }

  void place(size_t hash_of_run, uint32_t start) {
    size_t slot = hash_of_run & (slots_.size() - 1);
    while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = start;
  }

  void grow() {
    slots_.assign(slots_.size() * 2, 0);
    for (size_t start = 1; start < runs_.size(); start += runs_[start + kHeader - 1]) {
      place(runs_[start], static_cast<uint32_t>(start));
    }
  }

  std::vector<uint32_t> slots_;  // 0: free, else the start of a run
  std::vector<uint32_t> runs_;
  size_t hash_ = 0;
  size_t count_ = 0;
};

}  // namespace shardwise
