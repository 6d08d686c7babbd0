// SPDX-License-Identifier: Apache-2.0
//
// Keys of a sort as unsigned integers, and sorts of these:
//
//   const KeyOrder<uint32_t> order(DType::kF32, {.equal_zeros = true});
//   order.key(bits of -1.5f) < order.key(bits of 0.0f) == order.key(bits of -0.0f)
//   sort_items(keys, scratch, n)        stable; n below 2^32
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "shardwise/base/dtype.h"
#include "shardwise/base/error.h"
#include "shardwise/ops/sort/comparators.h"

namespace shardwise {

// U has the size of the dtype's items.
template <class U>
class KeyOrder {
 public:
  KeyOrder(DType dtype, const SortKey& key)
      : is_float_(is_float(dtype)),
        is_signed_(is_signed_integer(dtype)),
        equal_zeros_(key.equal_zeros),
        equal_nans_(key.equal_nans),
        flip_(key.descending ? std::numeric_limits<U>::max() : U{0}),
        infinity_(infinity(dtype)) {}

  U key(U bits) const {
    if (is_float_) {
      const U magnitude = bits & static_cast<U>(~kSign);
      if (equal_zeros_) bits = magnitude == 0 ? U{0} : bits;
      if (equal_nans_) bits = magnitude > infinity_ ? quiet_nan() : bits;
      bits ^= (bits & kSign) != 0 ? std::numeric_limits<U>::max() : kSign;
    } else if (is_signed_) {
      bits ^= kSign;
    }
    return bits ^ flip_;
  }

  // The bits of a key; of those that share it, 0 or the quiet NaN.
  U bits(U key) const {
    key ^= flip_;
    if (is_float_) return key ^ ((key & kSign) != 0 ? kSign : std::numeric_limits<U>::max());
    return is_signed_ ? key ^ kSign : key;
  }

 private:
  static constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(U) - 1));

  static U infinity(DType dtype) {
    switch (dtype) {
      case DType::kF16: return static_cast<U>(0x7C00);
      case DType::kBF16: return static_cast<U>(0x7F80);
      case DType::kF32: return static_cast<U>(0x7F800000);
      case DType::kF64: return static_cast<U>(0x7FF0000000000000);
      default: return 0;
    }
  }
  U quiet_nan() const { return static_cast<U>(infinity_ | (infinity_ >> 1)); }

  bool is_float_, is_signed_, equal_zeros_, equal_nans_;
  U flip_, infinity_;
};

// Calls f.template operator()<U>() with the unsigned integer of `item_size` bytes.
template <class F>
decltype(auto) dispatch_key(int64_t item_size, F&& f) {
  switch (item_size) {
    case 1: return f.template operator()<uint8_t>();
    case 2: return f.template operator()<uint16_t>();
    case 4: return f.template operator()<uint32_t>();
    case 8: return f.template operator()<uint64_t>();
    default: fail<InternalError>("sort", "a key must have 1, 2, 4 or 8 bytes");
  }
}

// A key and the place of its row.
template <class U>
struct KeyAt {
  U key;
  uint32_t place;
};
template <class U>
U key_of(const KeyAt<U>& item) {
  return item.key;
}
template <class U>
  requires std::is_unsigned_v<U>
U key_of(U key) {
  return key;
}

namespace sort_detail {

constexpr int kDigitBits = 11;
constexpr size_t kBuckets = size_t{1} << kDigitBits;
constexpr int64_t kInsertion = 24;
constexpr int64_t kRadix = 768;  // fewer items are compared

template <class Item>
void insertion_sort(Item* items, int64_t n) {
  for (int64_t i = 1; i < n; ++i) {
    const Item item = items[i];
    int64_t at = i;
    for (; at > 0 && key_of(item) < key_of(items[at - 1]); --at) items[at] = items[at - 1];
    items[at] = item;
  }
}

template <class Item>
void radix_sort(Item* items, Item* scratch, int64_t n) {
  using U = decltype(key_of(*items));
  constexpr int kBits = 8 * static_cast<int>(sizeof(U));
  constexpr int kPasses = (kBits + kDigitBits - 1) / kDigitBits;
  std::vector<std::array<uint32_t, kBuckets>> counts(kPasses);
  for (int64_t i = 0; i < n; ++i) {
    const U key = key_of(items[i]);
    for (int pass = 0; pass < kPasses; ++pass) ++counts[pass][(key >> (pass * kDigitBits)) & (kBuckets - 1)];
  }
  Item* from = items;
  Item* to = scratch;
  for (int pass = 0; pass < kPasses; ++pass) {
    std::array<uint32_t, kBuckets>& count = counts[pass];
    const int shift = pass * kDigitBits;
    // A digit that all keys share moves nothing.
    if (count[(key_of(from[0]) >> shift) & (kBuckets - 1)] == n) continue;
    uint32_t next = 0;
    for (uint32_t& bucket : count) next += std::exchange(bucket, next);
    for (int64_t i = 0; i < n; ++i) to[count[(key_of(from[i]) >> shift) & (kBuckets - 1)]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::copy_n(from, n, items);
}

}  // namespace sort_detail

// By key, stable. `scratch` has room for n items.
template <class Item>
void sort_items(Item* items, Item* scratch, int64_t n) {
  if (n <= sort_detail::kInsertion) return sort_detail::insertion_sort(items, n);
  if (n >= sort_detail::kRadix) return sort_detail::radix_sort(items, scratch, n);
  std::stable_sort(items, items + n, [](const Item& a, const Item& b) { return key_of(a) < key_of(b); });
}

}  // namespace shardwise
