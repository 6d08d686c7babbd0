// SPDX-License-Identifier: Apache-2.0
//
// Conversions of one lane. Integers wrap around. Floats are truncated towards zero and saturate; NaN becomes 0. Nonzero
// becomes true. A conversion to a float rounds once, to nearest even.
//
//   Convert<float, int8_t>::apply(300.7f) is 127;  Convert<int32_t, uint8_t>::apply(-1) is 255
#pragma once

#include "shardwise/tile/simd_scalar.h"

namespace shardwise {
namespace {

template <class F, class I>
constexpr F kBeyond = static_cast<F>(1ULL << (kBits<I> - 1)) *
                      (kIsSigned<I> ? F{1} : F{2});  // one more than the largest I: a power of two, so exact

template <class From, class To>
struct Convert {
  static To apply(From x) {
    if constexpr (kIsFloat<From> && !kIsFloat<To>) {
      const bool inside = (x > static_cast<From>(kSmallest<To>)) & (x < kBeyond<From, To>);
      To result = static_cast<To>(inside ? x : From{0});
      result = x >= kBeyond<From, To> ? kLargest<To> : result;
      return x <= static_cast<From>(kSmallest<To>) ? kSmallest<To> : result;
    } else {
      return static_cast<To>(x);
    }
  }
};
template <class From>
struct Convert<From, Truthy> {
  static Truthy apply(From x) { return {static_cast<uint8_t>(x != 0)}; }
  template <class V>
  static auto apply(V x) {
    return x != 0;
  }
};
template <class To>
struct Convert<Truthy, To> {
  static To apply(Truthy x) { return static_cast<To>(x.byte != 0); }
};
template <>
struct Convert<Truthy, Truthy> {
  static Truthy apply(Truthy x) { return {static_cast<uint8_t>(x.byte != 0)}; }
};

template <>
struct Convert<Half, float> {
  static float apply(Half x) {
    const uint32_t sign = (static_cast<uint32_t>(x.bits) & 0x8000U) << 16;
    const uint32_t exponent = (static_cast<uint32_t>(x.bits) >> 10) & 0x1FU;
    const uint32_t mantissa = x.bits & 0x3FFU;
    const uint32_t small = bits_of(static_cast<float>(static_cast<int32_t>(mantissa)) * 0x1p-24F);  // exact
    const uint32_t widened = exponent == 0x1FU ? 0xFFU : exponent + 112U;
    return from_bits<float>(sign | (exponent == 0 ? small : (widened << 23) | (mantissa << 13)));
  }
};
template <>
struct Convert<float, Half> {
  static Half apply(float x) {
    const uint32_t all = bits_of(x);
    const uint32_t sign = (all >> 16) & 0x8000U;
    const uint32_t magnitude = all & 0x7FFFFFFFU;
    // Normal: add half of the last kept bit, less one if that bit is even. Subnormal: floats in [0.5, 1) have the last
    // bit of float16 subnormals, 2^-24, so the addition rounds.
    const uint32_t normal = (magnitude - 0x38000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
    const float tiny = from_bits<float>(magnitude < 0x38800000U ? magnitude : 0U);
    const uint32_t subnormal = bits_of(tiny + 0.5F) - 0x3F000000U;
    uint32_t result = magnitude >= 0x38800000U ? normal : subnormal;
    result = magnitude >= 0x47800000U ? 0x7C00U : result;
    result = magnitude > 0x7F800000U ? 0x7E00U | ((magnitude >> 13) & 0x3FFU) : result;
    return {static_cast<uint16_t>(sign | result)};
  }
};
template <>
struct Convert<Brain, float> {
  static float apply(Brain x) { return from_bits<float>(static_cast<uint32_t>(x.bits) << 16); }
};
template <>
struct Convert<float, Brain> {
  static Brain apply(float x) {
    const uint32_t all = bits_of(x);
    const uint32_t rounded = (all + 0x7FFFU + ((all >> 16) & 1U)) >> 16;
    const bool is_nan = (all & 0x7FFFFFFFU) > 0x7F800000U;
    return {static_cast<uint16_t>(is_nan ? (all >> 16) | 0x40U : rounded)};
  }
};

// double -> float with "round to odd": truncate, and set the last bit if the result is inexact. Rounding that to 16
// bits equals one rounding of the double.
inline float cut_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const bool rounded_up = Abs::apply(back) > Abs::apply(x);
  const uint32_t bits = bits_of(nearest) - static_cast<uint32_t>(rounded_up);
  return (back == x) | (x != x) ? nearest : from_bits<float>(bits | 1U);
}
template <>
struct Convert<double, Half> {
  static Half apply(double x) { return Convert<float, Half>::apply(cut_to_odd(x)); }
};
template <>
struct Convert<double, Brain> {
  static Brain apply(double x) { return Convert<float, Brain>::apply(cut_to_odd(x)); }
};

}  // namespace
}  // namespace shardwise
