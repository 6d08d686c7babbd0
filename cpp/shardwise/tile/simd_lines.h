// SPDX-License-Identifier: Apache-2.0
//
// The loops of lines.h. Folds and searches run on vectors of one register: GCC keeps wider ones in memory between two
// operations. Included by simd.h; the same restrictions hold.
#pragma once

#include "shardwise/tile/lines.h"
#include "shardwise/tile/simd_scalar.h"

namespace shardwise {
namespace {

inline constexpr int64_t kUnrolled = 4;  // vectors that run side by side

inline constexpr int64_t kRegisterBytes = sizeof(VECTOR_F64) < 16 ? 16 : sizeof(VECTOR_F64);
template <class T>
using RegisterOf __attribute__((vector_size(kRegisterBytes))) = T;
template <class T>
constexpr int64_t kRegisterItems = kRegisterBytes / static_cast<int64_t>(sizeof(T));

#define INLINE inline __attribute__((always_inline))

// The vector whose items i are those of `x` at place(i).
template <class T, class Place>
INLINE RegisterOf<T> permuted(RegisterOf<T> x, Place place) {
  RegisterOf<SignedOf<T>> places{};
  for (int i = 0; i < static_cast<int>(kRegisterItems<T>); ++i) places[i] = static_cast<SignedOf<T>>(place(i));
  return __builtin_shuffle(x, places);
}

// Combines lane k with lane k + kHalf, then with k + kHalf / 2, … The first lane of the result is the total.
template <class T, int64_t kHalf, class Combine>
INLINE RegisterOf<T> fold_lanes(RegisterOf<T> x, Combine combine) {
  if constexpr (kHalf == 0) {
    return x;
  } else {
    constexpr int kMask = static_cast<int>(kRegisterItems<T>) - 1;
    const auto upper = permuted<T>(x, [](int k) { return (k + static_cast<int>(kHalf)) & kMask; });
    return fold_lanes<T, kHalf / 2>(combine(x, upper), combine);
  }
}

// ---- combinations: Item is what lies in memory, Value what a total is -----------------------------------------------

template <class T>
struct OfItems {
  using Item = T;
  using Value = T;
  using V = RegisterOf<T>;
  static constexpr bool kAnyOrder = !kIsFloat<T>;
  static INLINE V load(V items) { return items; }
};
template <class T>
struct FoldedSum : OfItems<T> {
  static constexpr T kIdentity = kIsFloat<T> ? static_cast<T>(-0.0) : T{};
  static INLINE RegisterOf<T> combine(RegisterOf<T> a, RegisterOf<T> b) { return a + b; }
};
template <class T>
struct FoldedProduct : OfItems<T> {
  static constexpr T kIdentity = T{1};
  static INLINE RegisterOf<T> combine(RegisterOf<T> a, RegisterOf<T> b) { return a * b; }
};
template <class T>
struct FoldedAnd : OfItems<T> {
  static constexpr T kIdentity = static_cast<T>(~T{});
  static INLINE RegisterOf<T> combine(RegisterOf<T> a, RegisterOf<T> b) { return a & b; }
};
template <class T>
struct FoldedOr : OfItems<T> {
  static constexpr T kIdentity = T{};
  static INLINE RegisterOf<T> combine(RegisterOf<T> a, RegisterOf<T> b) { return a | b; }
};
template <class T, bool kMax>
struct FoldedExtremum : OfItems<T> {
  static constexpr T kIdentity = kMax ? kSmallest<T> : kLargest<T>;
  static INLINE RegisterOf<T> combine(RegisterOf<T> a, RegisterOf<T> b) { return (kMax ? a > b : a < b) ? a : b; }
};

// Floats become keys.
template <class T, bool kMax>
struct FoldedKeys {
  using Item = T;
  using Value = SignedOf<T>;
  using V = RegisterOf<Value>;
  static constexpr bool kAnyOrder = true;
  static constexpr Value kNaN = kMax ? kLargest<Value> : kSmallest<Value>;
  static constexpr T kIdentity = static_cast<T>(kMax ? -__builtin_inf() : __builtin_inf());
  static INLINE V load(RegisterOf<T> items) {
    const V bits = __builtin_bit_cast(V, items);
    const V keys = bits ^ ((bits >> (kBits<Value> - 1)) & kLargest<Value>);
    return items == items ? keys : V{} + kNaN;
  }
  static INLINE V combine(V a, V b) { return (kMax ? a > b : a < b) ? a : b; }
};

// ---- folds ----------------------------------------------------------------------------------------------------------

template <class V>
INLINE V read(const void* from) {
  V vector;
  memcpy(&vector, from, sizeof vector);
  return vector;
}

// `count` items, fewer than a vector has; the others are `rest`.
template <class T>
INLINE RegisterOf<T> read_part(const T* from, int64_t count, T rest) {
  T items[kRegisterItems<T>];
  for (int64_t i = 0; i < kRegisterItems<T>; ++i) items[i] = i < count ? from[i] : rest;
  return read<RegisterOf<T>>(items);
}

// The state of a fold after some of the items. It starts from a stored total, or is combined with it at the end.
template <class Op>
struct Total {
  using V = typename Op::V;
  static constexpr int64_t kSideBySide = 8;  // in registers
  V value;

  INLINE void start(V stored) { value = stored; }
  INLINE void add(RegisterOf<typename Op::Item> items) { value = Op::combine(value, Op::load(items)); }
  INLINE void join(const Total& other) { value = Op::combine(value, other.value); }
  INLINE V combined_with(V) const { return value; }
};

// Floats are compared as they are, and only the last one becomes a key. Equal zeros do not show which of them has been
// kept, so the signs of all items are combined, too.
template <class T, bool kMax>
struct Total<FoldedKeys<T, kMax>> {
  using Op = FoldedKeys<T, kMax>;
  using V = typename Op::V;
  static constexpr int64_t kSideBySide = 4;
  RegisterOf<T> top;
  V signs, nans;

  INLINE void start(V) {
    top = RegisterOf<T>{} + Op::kIdentity;
    signs = V{} - (kMax ? 1 : 0);
    nans = V{};
  }
  INLINE void add(RegisterOf<T> items) {
    take(items, __builtin_bit_cast(V, items));
    nans |= items != items;
  }
  INLINE void join(const Total& other) {
    take(other.top, other.signs);
    nans |= other.nans;
  }
  INLINE V combined_with(V stored) const {
    const V bits = top == T{0} ? signs : __builtin_bit_cast(V, top);
    const V sign = bits >> (kBits<typename Op::Value> - 1);
    const V keys = top == T{0} ? sign : bits ^ (sign & kLargest<typename Op::Value>);
    return Op::combine(stored, nans != 0 ? V{} + Op::kNaN : keys);
  }

 private:
  INLINE void take(RegisterOf<T> items, V bits) {
    top = (kMax ? items > top : items < top) ? items : top;  // a NaN is not taken
    signs = kMax ? signs & bits : signs | bits;
  }
};

template <class Op>
void fold_line(void* total, const void* from, int64_t count) {
  using Item = typename Op::Item;
  using Value = typename Op::Value;
  using V = typename Op::V;
  using Items = RegisterOf<Item>;
  constexpr int64_t kItems = kRegisterItems<Item>;
  const Item* items = static_cast<const Item*>(from);
  const V identity = Op::load(Items{} + Op::kIdentity);
  Total<Op> totals[kUnrolled];
  for (auto& each : totals) each.start(identity);
  for (; count >= kUnrolled * kItems; count -= kUnrolled * kItems) {
    for (auto& each : totals) {
      each.add(read<Items>(items));
      items += kItems;
    }
  }
  for (; count >= kItems; count -= kItems, items += kItems) totals[0].add(read<Items>(items));
  if (count > 0) totals[1].add(read_part(items, count, Op::kIdentity));
  for (int64_t i = 1; i < kUnrolled; ++i) totals[0].join(totals[i]);
  V value = totals[0].combined_with(identity);
  // By shuffles: memory that was just written in one piece is slow to read in another.
  value =
      fold_lanes<Value, kItems / 2>(value, [](V a, V b) __attribute__((always_inline)) { return Op::combine(a, b); });
  Value last;
  memcpy(&last, total, sizeof last);
  value = Op::combine(value, V{} + last);
  memcpy(total, &value, sizeof last);
}

template <class Op>
INLINE void fold_few_rows(void* to, const void* from, int64_t stride, int64_t count, int64_t width) {
  using Item = typename Op::Item;
  using V = typename Op::V;
  using Items = RegisterOf<Item>;
  constexpr int64_t kItems = kRegisterItems<Item>, kTotals = Total<Op>::kSideBySide;
  auto* totals = static_cast<typename Op::Value*>(to);
  const Item* first = static_cast<const Item*>(from);
  const auto row_of = [&](int64_t row) __attribute__((always_inline)) {
    return reinterpret_cast<const Item*>(reinterpret_cast<const char*>(first) + row * stride);
  };
  for (; width >= kTotals * kItems; width -= kTotals * kItems) {
    Total<Op> values[kTotals];
    for (int64_t i = 0; i < kTotals; ++i) values[i].start(read<V>(totals + i * kItems));
    for (int64_t row = 0; row < count; ++row) {
      const Item* items = row_of(row);
      for (int64_t i = 0; i < kTotals; ++i) values[i].add(read<Items>(items + i * kItems));
    }
    for (int64_t i = 0; i < kTotals; ++i, totals += kItems) {
      const V value = values[i].combined_with(read<V>(totals));
      memcpy(totals, &value, sizeof value);
    }
    first += kTotals * kItems;
  }
  for (; width > 0; width -= kItems) {
    const int64_t part = width < kItems ? width : kItems;
    const auto bytes = static_cast<size_t>(part) * sizeof(Item);
    V value{};
    memcpy(&value, totals, bytes);
    for (int64_t row = 0; row < count; ++row) {
      const Items items = part == kItems ? read<Items>(row_of(row)) : read_part(row_of(row), part, Op::kIdentity);
      value = Op::combine(value, Op::load(items));
    }
    memcpy(totals, &value, bytes);
    totals += part;
    first += part;
  }
}

// A few rows at a time, which the hardware prefetches; and the next totals do not wait for those of all rows.
template <class Op>
void fold_rows(void* to, const void* from, int64_t stride, int64_t count, int64_t width) {
  constexpr int64_t kTogether = 8;
  const char* rows = static_cast<const char*>(from);
  for (; count > 0; count -= kTogether, rows += kTogether * stride) {
    fold_few_rows<Op>(to, rows, stride, count < kTogether ? count : kTogether, width);
  }
}

// ---- searches -------------------------------------------------------------------------------------------------------

// A bit for each byte of a mask, whose items are all ones or all zeros.
template <class Mask>
INLINE uint64_t byte_bits(Mask mask) {
#if defined(__AVX512BW__)
  return _mm512_movepi8_mask(__builtin_bit_cast(__m512i, mask));
#elif defined(__AVX2__)
  return static_cast<uint32_t>(_mm256_movemask_epi8(__builtin_bit_cast(__m256i, mask)));
#elif defined(__SSE2__)
  return static_cast<uint32_t>(_mm_movemask_epi8(__builtin_bit_cast(__m128i, mask)));
#else
  // One bit of each byte of a half; a product adds them up in its top byte.
  constexpr RegisterOf<uint8_t> kPlaces = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const auto halves = __builtin_bit_cast(RegisterOf<uint64_t>, __builtin_bit_cast(RegisterOf<uint8_t>, mask) & kPlaces);
  const auto bits = (halves * 0x0101010101010101ULL) >> 56;
  return bits[0] | bits[1] << 8;
#endif
}

template <class Mask>
INLINE bool any(Mask mask) {
  return byte_bits(mask) != 0;
}

template <class T>
int64_t find_equal(const void* from, int64_t count, const void* value) {
  using V = RegisterOf<T>;
  constexpr int64_t kItems = kRegisterItems<T>;
  const T* items = static_cast<const T*>(from);
  T wanted;
  memcpy(&wanted, value, sizeof wanted);
  const V all = V{} + wanted;
  int64_t k = 0;
  for (; k + kUnrolled * kItems <= count; k += kUnrolled * kItems) {
    auto found = read<V>(items + k) == all;
    for (int64_t i = 1; i < kUnrolled; ++i) found |= read<V>(items + k + i * kItems) == all;
    if (any(found)) break;
  }
  for (; k + kItems <= count; k += kItems) {
    const uint64_t found = byte_bits(read<V>(items + k) == all);
    if (found != 0) return k + __builtin_ctzll(found) / static_cast<int64_t>(sizeof(T));
  }
  while (k < count && items[k] != wanted) ++k;
  return k;
}

// ---- random words ---------------------------------------------------------------------------------------------------

using Words = RegisterOf<uint32_t>;
inline constexpr int64_t kWordParts = kRandomLanes / kRegisterItems<uint32_t>;

template <int kRotation>
INLINE void mix(Words (&a)[kWordParts], Words (&b)[kWordParts]) {
  for (int64_t i = 0; i < kWordParts; ++i) {
    a[i] += b[i];
    b[i] = ((b[i] << kRotation) | (b[i] >> (32 - kRotation))) ^ a[i];
  }
}

inline void three_fry(uint64_t key, uint64_t counter, uint32_t (*words)[kRandomLanes]) {
  const auto first = static_cast<uint32_t>(key), second = static_cast<uint32_t>(key >> 32);
  const uint32_t keys[3] = {first, second, first ^ second ^ 0x1BD11BDAU};
  for (int64_t l = 0; l < kRandomLanes; ++l) {
    const uint64_t block = counter + static_cast<uint64_t>(l);
    words[0][l] = static_cast<uint32_t>(block) + keys[0];
    words[1][l] = static_cast<uint32_t>(block >> 32) + keys[1];
  }
  Words a[kWordParts], b[kWordParts];
  memcpy(a, words[0], sizeof a);
  memcpy(b, words[1], sizeof b);
  for (uint32_t group = 0; group < 5; ++group) {
    if (group % 2 == 0) {
      mix<13>(a, b), mix<15>(a, b), mix<26>(a, b), mix<6>(a, b);
    } else {
      mix<17>(a, b), mix<29>(a, b), mix<16>(a, b), mix<24>(a, b);
    }
    for (int64_t i = 0; i < kWordParts; ++i) {
      a[i] += keys[(group + 1) % 3];
      b[i] += keys[(group + 2) % 3] + group + 1;
    }
  }
  memcpy(words[0], a, sizeof a);
  memcpy(words[1], b, sizeof b);
}

inline void philox(uint64_t key, uint32_t (*x)[kRandomLanes]) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
    for (int64_t l = 0; l < kRandomLanes; ++l) {
      const uint64_t p = uint64_t{0xD2511F53U} * x[0][l], q = uint64_t{0xCD9E8D57U} * x[2][l];
      x[0][l] = static_cast<uint32_t>(q >> 32) ^ x[1][l] ^ k0;
      x[1][l] = static_cast<uint32_t>(q);
      x[2][l] = static_cast<uint32_t>(p >> 32) ^ x[3][l] ^ k1;
      x[3][l] = static_cast<uint32_t>(p);
    }
  }
}

// ---- the table ------------------------------------------------------------------------------------------------------

template <class Op, class... T>
constexpr void set_fold(LineTable& table, FoldCode code) {
  ((table.fold_rows[code][kColumnOf<T>] = fold_rows<Op>), ...);
  if constexpr (Op::kAnyOrder) ((table.fold_line[code][kColumnOf<T>] = fold_line<Op>), ...);
}

// Sums, products and bits of all T depend only on the width: signed items would overflow.
template <class U, class... T>
constexpr void set_bits(LineTable& table) {
  set_fold<FoldedSum<U>, U, T...>(table, kFoldSum);
  set_fold<FoldedProduct<U>, U, T...>(table, kFoldProduct);
  set_fold<FoldedAnd<U>, U, T...>(table, kFoldAnd);
  set_fold<FoldedOr<U>, U, T...>(table, kFoldOr);
}
template <template <class, bool> class Extremum, class... T>
constexpr void set_extrema(LineTable& table, Types<T...>) {
  (set_fold<Extremum<T, true>, T>(table, kFoldMax), ...);
  (set_fold<Extremum<T, false>, T>(table, kFoldMin), ...);
  ((table.find_equal[kColumnOf<T>] = find_equal<T>), ...);
}
template <class... T>
constexpr void set_float_sums(LineTable& table, Types<T...>) {
  (set_fold<FoldedSum<T>, T>(table, kFoldSum), ...);
  (set_fold<FoldedProduct<T>, T>(table, kFoldProduct), ...);
}

constexpr LineTable make_lines() {
  LineTable table{};
  set_bits<uint8_t, int8_t, Truthy>(table);
  set_bits<uint16_t, int16_t>(table);
  set_bits<uint32_t, int32_t>(table);
  set_bits<uint64_t, int64_t>(table);
  set_extrema<FoldedExtremum>(table, Integers());
  set_extrema<FoldedKeys>(table, Floats());
  set_float_sums(table, Floats());
  table.three_fry = three_fry;
  table.philox = philox;
  return table;
}

#undef INLINE

}  // namespace
}  // namespace shardwise
