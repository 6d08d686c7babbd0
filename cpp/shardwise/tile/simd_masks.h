// SPDX-License-Identifier: Apache-2.0
//
// Masks, which comparisons of vectors give, as booleans in memory:
//
//   write_truths<float>(out, 64, [=](int64_t i) { return read<RegisterOf<float>>(x + i) > 0; })     // 64 bytes, 0 or 1
//
// Included by simd.h; the same restrictions hold.
#pragma once

#include "shardwise/tile/simd_lines.h"

namespace shardwise {
namespace {

#define INLINE inline __attribute__((always_inline))

// A byte, 1 or 0, for each item of masks: mask(i) are those of the items from i on, T as wide as they are.
#if defined(__AVX2__) && !defined(__AVX512BW__)
template <class T>
constexpr bool kPacksMasks = sizeof(T) >= 4;  // GCC masks the items once more before each step

template <class Mask>
INLINE __m256i packed_masks(Mask a, Mask b, Mask c, Mask d) {
  const auto of = [](Mask mask) __attribute__((always_inline)) { return __builtin_bit_cast(__m256i, mask); };
  return _mm256_packs_epi16(_mm256_packs_epi32(of(a), of(b)), _mm256_packs_epi32(of(c), of(d)));
}

template <class T, class F>
INLINE void write_truths(uint8_t* r, int64_t lanes, F mask) {
  for (int64_t i = 0; i < lanes; i += 32) {
    __m256i packed;
    if constexpr (sizeof(T) == 4) {
      // By 128 bits: 0-3, 8-11, 16-19, 24-27 and 4-7, 12-15, ….
      packed = packed_masks(mask(i), mask(i + 8), mask(i + 16), mask(i + 24));
      packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    } else {
      const auto halves = [&](int64_t k) __attribute__((always_inline)) {
        const __m256 low = __builtin_bit_cast(__m256, mask(k)), high = __builtin_bit_cast(__m256, mask(k + 4));
        return _mm256_shuffle_ps(low, high, 0x88);
      };
      // By 128 bits: 0-1, 4-5, 8-9, … and 2-3, 6-7, ….
      packed = packed_masks(halves(i), halves(i + 8), halves(i + 16), halves(i + 24));
      packed = _mm256_permute4x64_epi64(packed, 0xD8);
      const __m256i pairs = _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                             0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
      packed = _mm256_shuffle_epi8(packed, pairs);
    }
    packed = _mm256_and_si256(packed, _mm256_set1_epi8(1));
    memcpy(r + i, &packed, sizeof packed);
  }
}
#else
template <class T>
constexpr bool kPacksMasks = false;
template <class T, class F>
void write_truths(uint8_t* r, int64_t lanes, F mask);
#endif

#undef INLINE

}  // namespace
}  // namespace shardwise
