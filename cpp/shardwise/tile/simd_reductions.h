// SPDX-License-Identifier: Apache-2.0
//
// The loops of reductions.h. Included by simd.h; the same restrictions hold.
#pragma once

#include "shardwise/tile/reductions.h"
#include "shardwise/tile/simd_lines.h"

namespace shardwise {
namespace {

#define INLINE inline __attribute__((always_inline))

// ---- searches -------------------------------------------------------------------------------------------------------

template <class T, bool kMax>
INLINE RegisterOf<T> better_of(RegisterOf<T> items, RegisterOf<T> best) {
  return (kMax ? items > best : items < best) ? items : best;  // a NaN is not taken
}

template <class T>
int64_t find_nan(const T* items) {
  int64_t k = 0;
  while (items[k] == items[k]) ++k;
  return k;
}

// The best items of each block, and of all; whether one of them is a NaN.
template <class T, bool kMax>
struct Bests {
  using V = RegisterOf<T>;
  using Mask = RegisterOf<SignedOf<T>>;
  static constexpr int64_t kItems = kRegisterItems<T>, kBlock = 8 * kUnrolled * kItems;
  static constexpr T kWorst = [] {
    if constexpr (kIsFloat<T>) return static_cast<T>(kMax ? -__builtin_inf() : __builtin_inf());
    return kMax ? kSmallest<T> : kLargest<T>;
  }();
  V of_block[kMostSearched / kBlock + 1];
  V of_all = V{} + kWorst;
  Mask nans{};
  int64_t blocks = 0;

  INLINE void add_block(const T* items) {
    V best[kUnrolled];
    for (V& each : best) each = V{} + kWorst;
    for (int64_t i = 0; i < kBlock; i += kUnrolled * kItems) {
      for (int64_t j = 0; j < kUnrolled; ++j) take(read<V>(items + i + j * kItems), best[j]);
    }
    for (int64_t j = 1; j < kUnrolled; ++j) best[0] = better_of<T, kMax>(best[j], best[0]);
    end_block(best[0]);
  }
  INLINE void add_rest(const T* items, int64_t count) {
    V best = V{} + kWorst;
    for (; count >= kItems; count -= kItems, items += kItems) take(read<V>(items), best);
    if (count > 0) take(read_part(items, count, kWorst), best);
    end_block(best);
  }

 private:
  INLINE void take(V items, V& best) {
    best = better_of<T, kMax>(items, best);
    if constexpr (kIsFloat<T>) nans |= items != items;
  }
  INLINE void end_block(V best) {
    of_block[blocks++] = best;
    of_all = better_of<T, kMax>(best, of_all);
  }
};

template <class T, bool kMax>
int64_t find_extreme(const void* from, int64_t count, const void* bound) {
  using V = RegisterOf<T>;
  using Found = Bests<T, kMax>;
  const T* items = static_cast<const T*>(from);
  Found bests;
  int64_t k = 0;
  for (; k + Found::kBlock <= count; k += Found::kBlock) bests.add_block(items + k);
  if (k < count) bests.add_rest(items + k, count - k);
  if (kIsFloat<T> && any(bests.nans)) return find_nan(items);
  // In all lanes: each step of the fold turns them around.
  const V best = fold_lanes<T, kRegisterItems<T> / 2>(
      bests.of_all, [](V a, V b) __attribute__((always_inline)) { return better_of<T, kMax>(a, b); });
  T limit;
  memcpy(&limit, bound, sizeof limit);
  if (any(kMax ? best < limit : best > limit)) return count;
  int64_t block = 0;
  while (!any(bests.of_block[block] == best)) ++block;
  const int64_t begin = block * Found::kBlock;
  const T wanted = best[0];
  return begin + find_equal<T>(items + begin, count - begin, &wanted);
}

// ---- folds of chunks ------------------------------------------------------------------------------------------------

template <class Op>
void fold_chunks(const void* from, int64_t chunks, void* to) {
  using T = typename Op::Item;
  using V = typename Op::V;
  constexpr int64_t kItems = kRegisterItems<T>, kRegisters = kChunkLanes / kItems;
  static_assert(kRegisters >= 1 && kChunkItems % kChunkLanes == 0);
  const T* items = static_cast<const T*>(from);
  T* totals = static_cast<T*>(to);
  for (int64_t chunk = 0; chunk < chunks; ++chunk, items += kChunkItems) {
    V lanes[kRegisters];
    for (V& each : lanes) {
      for (int64_t k = 0; k < kItems; ++k) each[k] = Op::kIdentity;  // V{} + -0.0 would be +0.0
    }
    for (int64_t i = 0; i < kChunkItems; i += kChunkLanes) {
      for (int64_t r = 0; r < kRegisters; ++r) lanes[r] = Op::combine(lanes[r], read<V>(items + i + r * kItems));
    }
    for (int64_t half = kRegisters / 2; half > 0; half /= 2) {
      for (int64_t r = 0; r < half; ++r) lanes[r] = Op::combine(lanes[r], lanes[r + half]);
    }
    const V total =
        fold_lanes<T, kItems / 2>(lanes[0], [](V a, V b) __attribute__((always_inline)) { return Op::combine(a, b); });
    totals[chunk] = total[0];
  }
}

// ---- the table ------------------------------------------------------------------------------------------------------

template <class... T>
constexpr void set_searches(ReductionTable& table, Types<T...>) {
  ((table.find_extreme[kFindMax][kColumnOf<T>] = find_extreme<T, true>), ...);
  ((table.find_extreme[kFindMin][kColumnOf<T>] = find_extreme<T, false>), ...);
}
template <class... T>
constexpr void set_chunks(ReductionTable& table, Types<T...>) {
  ((table.fold_chunks[kFoldSum][kColumnOf<T>] = fold_chunks<FoldedSum<T>>), ...);
  ((table.fold_chunks[kFoldProduct][kColumnOf<T>] = fold_chunks<FoldedProduct<T>>), ...);
}

constexpr ReductionTable make_reductions() {
  ReductionTable table{};
  set_searches(table, Integers());
  set_searches(table, Floats());
  set_chunks(table, Floats());
  return table;
}

#undef INLINE

}  // namespace
}  // namespace shardwise
