// SPDX-License-Identifier: Apache-2.0
//
// Hash-consing: equal values get one 32-bit id.
//
//   Interner<TensorType, TypeId> types;       // finds hash_value(const TensorType&)
//   types.intern(a) == types.intern(b);   // exactly when a == b
//   types[id]                             // the value; the reference stays valid
//
// Any number of threads may intern and read at once. Interning takes a lock. Reading takes none, because a value never
// moves, and is complete before its id is returned.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace shardwise {

// An array that grows by pieces, each twice as large as the one before, and never moves its elements. Appending needs a
// lock; reading an existing element does not.
template <class T>
class StableArray {
 public:
  uint32_t append(T value) {
    const auto [piece, offset] = place(size_);
    if (pieces_[piece] == nullptr) pieces_[piece] = std::make_unique<T[]>(size_t{kFirst} << piece);
    pieces_[piece][offset] = std::move(value);
    return size_++;
  }
  const T& operator[](uint32_t index) const {
    const auto [piece, offset] = place(index);
    return pieces_[piece][offset];
  }
  uint32_t size() const { return size_; }

 private:
  static constexpr uint32_t kFirst = 16;
  // Piece p holds the indices i for which the highest bit of i + 16 is bit p + 4.
  static std::pair<size_t, size_t> place(uint32_t index) {
    const uint64_t shifted = uint64_t{index} + kFirst;
    const auto piece = static_cast<size_t>(std::bit_width(shifted) - std::bit_width(uint64_t{kFirst}));
    return {piece, static_cast<size_t>(shifted - (uint64_t{kFirst} << piece))};
  }
  std::array<std::unique_ptr<T[]>, 29> pieces_;
  uint32_t size_ = 0;
};

template <class T, class IdT>
class Interner {
 public:
  Interner() { values_.append(T{}); }
  IdT intern(const T& value) {
    const size_t hash = hash_value(value);
    const std::scoped_lock lock(mutex_);
    auto [begin, end] = index_.equal_range(hash);
    for (auto it = begin; it != end; ++it) {
      if (values_[it->second] == value) return IdT{it->second};
    }
    const uint32_t id = values_.append(value);
    index_.emplace(hash, id);
    return IdT{id};
  }
  const T& operator[](IdT id) const { return values_[id.index]; }
  template <class Predicate>
  bool any_of(Predicate holds) const {
    const std::scoped_lock lock(mutex_);
    for (uint32_t id = 1; id < values_.size(); ++id) {
      if (holds(values_[id])) return true;
    }
    return false;
  }

 private:
  mutable std::mutex mutex_;
  StableArray<T> values_;  // element 0 is "none"
  std::unordered_multimap<size_t, uint32_t> index_;
};

}  // namespace shardwise
