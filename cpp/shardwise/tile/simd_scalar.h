// SPDX-License-Identifier: Apache-2.0
//
// One lane of every tile instruction that needs no SLEEF, as functors that the loops of simd.h inline:
//
//   Maximum::apply(NaN, 1.0f) is NaN;  Divide::apply<int32_t>(7, 0) is -1;  ShiftLeft::apply<uint8_t>(1, 9) is 0
//
// Included by units compiled for different CPUs: everything is in an unnamed namespace, and only C headers are
// included.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace shardwise {
namespace {

struct Half {
  uint16_t bits;
};  // float16
struct Brain {
  uint16_t bits;
};  // bfloat16

// Integers compute in an unsigned type of at least 32 bits, which wraps around and is not promoted.
template <class T>
struct Lane;
template <>
struct Lane<int8_t> {
  using U = uint8_t;
  using S = int8_t;
  using W = uint32_t;
};
template <>
struct Lane<int16_t> {
  using U = uint16_t;
  using S = int16_t;
  using W = uint32_t;
};
template <>
struct Lane<int32_t> {
  using U = uint32_t;
  using S = int32_t;
  using W = uint32_t;
};
template <>
struct Lane<int64_t> {
  using U = uint64_t;
  using S = int64_t;
  using W = uint64_t;
};
template <>
struct Lane<uint8_t> : Lane<int8_t> {};
template <>
struct Lane<uint16_t> : Lane<int16_t> {};
template <>
struct Lane<uint32_t> : Lane<int32_t> {};
template <>
struct Lane<uint64_t> : Lane<int64_t> {};
template <>
struct Lane<float> {
  using U = uint32_t;
  using S = int32_t;
};
template <>
struct Lane<double> {
  using U = uint64_t;
  using S = int64_t;
};
template <class T>
using UnsignedOf = typename Lane<T>::U;
template <class T>
using SignedOf = typename Lane<T>::S;
template <class T>
using WideOf = typename Lane<T>::W;

template <class T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <>
constexpr bool kIsFloat<double> = true;
template <class T>
constexpr bool kIsSigned = static_cast<T>(-1) < static_cast<T>(0);
template <class T>
constexpr int kBits = static_cast<int>(sizeof(T)) * 8;

template <class T>
inline UnsignedOf<T> bits_of(T x) {
  return __builtin_bit_cast(UnsignedOf<T>, x);
}
template <class T>
inline T from_bits(UnsignedOf<T> bits) {
  return __builtin_bit_cast(T, bits);
}
template <class T>
constexpr UnsignedOf<T> sign_bit() {
  return static_cast<UnsignedOf<T>>(1) << (kBits<T> - 1);
}
template <class T>
inline T canonical_nan() {
  if constexpr (sizeof(T) == 4)
    return from_bits<T>(0x7FC00000U);
  else
    return from_bits<T>(0x7FF8000000000000ULL);
}
template <class T>
inline T with_sign_of(T magnitude, T sign) {
  const auto mask = sign_bit<T>();
  return from_bits<T>(static_cast<UnsignedOf<T>>((bits_of(magnitude) & ~mask) | (bits_of(sign) & mask)));
}
inline float cut(float x) { return __builtin_truncf(x); }
inline double cut(double x) { return __builtin_trunc(x); }

// ---- unary ---------------------------------------------------------------------------------------------------------

struct Abs {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsFloat<T>)
      return from_bits<T>(static_cast<UnsignedOf<T>>(bits_of(x) & ~sign_bit<T>()));
    else
      return static_cast<T>(x < 0 ? WideOf<T>{0} - static_cast<WideOf<T>>(x) : static_cast<WideOf<T>>(x));
  }
};
struct Negate {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsFloat<T>)
      return from_bits<T>(static_cast<UnsignedOf<T>>(bits_of(x) ^ sign_bit<T>()));
    else
      return static_cast<T>(WideOf<T>{0} - static_cast<WideOf<T>>(x));
  }
};
struct Sign {
  template <class T>
  static T apply(T x) {
    if constexpr (kIsFloat<T>) {
      const T one = with_sign_of(T{1}, x);
      return (x > 0) | (x < 0) ? one : x;  // ±0 and NaN are their own sign
    } else {
      return static_cast<T>((x > 0) - (x < 0));
    }
  }
};
struct Not {
  template <class T>
  static T apply(T x) {
    return static_cast<T>(~static_cast<WideOf<T>>(x));
  }
};
struct LogicalNot {
  template <class T>
  static T apply(T x) {
    return x == 0;
  }
};
struct Popcnt {
  template <class T>
  static T apply(T x) {
    using U = UnsignedOf<T>;  // no wider: more lanes fit into a vector
    const auto masked = [](U v, uint64_t mask) { return static_cast<U>(v & static_cast<U>(mask)); };
    auto v = static_cast<U>(x);
    v = static_cast<U>(v - masked(static_cast<U>(v >> 1), 0x5555555555555555ULL));
    v = static_cast<U>(masked(v, 0x3333333333333333ULL) + masked(static_cast<U>(v >> 2), 0x3333333333333333ULL));
    v = masked(static_cast<U>(v + (v >> 4)), 0x0F0F0F0F0F0F0F0FULL);
    for (int shift = 8; shift < kBits<T>; shift *= 2) v = static_cast<U>(v + static_cast<U>(v >> shift));
    return static_cast<T>(v & 0x7F);
  }
};
struct CountLeadingZeros {
  template <class T>
  static T apply(T x) {
    const uint64_t v = static_cast<UnsignedOf<T>>(x);
    return static_cast<T>(v == 0 ? kBits<T> : __builtin_clzll(v) - (64 - kBits<T>));
  }
};
struct Ceil {
  static float apply(float x) { return __builtin_ceilf(x); }
  static double apply(double x) { return __builtin_ceil(x); }
};
struct Floor {
  static float apply(float x) { return __builtin_floorf(x); }
  static double apply(double x) { return __builtin_floor(x); }
};
struct RoundNearestAfz {
  template <class T>
  static T apply(T x) {
    const T whole = cut(x);
    const T step = Abs::apply(x - whole) >= T(0.5) ? T{1} : T{0};
    return with_sign_of(Abs::apply(whole) + step, x);
  }
};
struct RoundNearestEven {
  static float apply(float x) { return __builtin_rintf(x); }
  static double apply(double x) { return __builtin_rint(x); }
};
struct Sqrt {
  static float apply(float x) { return __builtin_sqrtf(x); }
  static double apply(double x) { return __builtin_sqrt(x); }
};
struct Rsqrt {
  template <class T>
  static T apply(T x) {
    return T{1} / Sqrt::apply(x);
  }
};
struct IsFinite {
  template <class T>
  static bool apply(T x) {
    return x - x == 0;
  }
  template <class V>
  static auto mask(V x) {
    return x - x == 0;
  }
};
struct TotalOrderKey {
  template <class T>
  static SignedOf<T> apply(T x) {
    const auto bits = static_cast<SignedOf<T>>(bits_of(x));
    const auto magnitude = static_cast<SignedOf<T>>(~sign_bit<T>());
    return bits < 0 ? bits ^ magnitude : bits;
  }
};

// ---- binary --------------------------------------------------------------------------------------------------------

struct Add {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<WideOf<T>>(a) + static_cast<WideOf<T>>(b));
  }
};
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a - b;
    else
      return static_cast<T>(static_cast<WideOf<T>>(a) - static_cast<WideOf<T>>(b));
  }
};
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<WideOf<T>>(a) * static_cast<WideOf<T>>(b));
  }
};
// Whether the quotient of any two T, computed in double precision and cut, is exact; it becomes vector instructions.
// (So is that of any two integers up to 2^52: it is at least 1 / b away from the next integer, and rounded by half of
// that.)
template <class T>
constexpr bool kDividesAsDouble = !kIsFloat<T> && sizeof(T) <= 4;

struct Divide {
  template <class T>
  static T of_quotient(T, T b, T quotient) {
    return b == 0 ? static_cast<T>(-1) : quotient;
  }
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      return a / b;
    } else if constexpr (kDividesAsDouble<T>) {
      const double by = b == 0 ? 1.0 : static_cast<double>(b);
      const auto quotient = static_cast<int64_t>(static_cast<double>(a) / by);  // 2^31 wraps around
      return b == 0 ? static_cast<T>(-1) : static_cast<T>(quotient);
    } else {
      if (b == 0) return static_cast<T>(-1);
      if (kIsSigned<T> && b == static_cast<T>(-1)) return Negate::apply(a);  // the smallest integer overflows
      return static_cast<T>(a / b);
    }
  }
};
struct Remainder {
  template <class T>
  static T of_quotient(T a, T b, T quotient) {
    return static_cast<T>(static_cast<WideOf<T>>(a) - static_cast<WideOf<T>>(quotient) * static_cast<WideOf<T>>(b));
  }
  static float apply(float a, float b) { return __builtin_fmodf(a, b); }
  static double apply(double a, double b) { return __builtin_fmod(a, b); }
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kDividesAsDouble<T>) {
      return of_quotient(a, b, Divide::apply(a, b));  // of b = 0: a
    } else {
      if (b == 0) return a;
      if (kIsSigned<T> && b == static_cast<T>(-1)) return 0;
      return static_cast<T>(a % b);
    }
  }
};
struct IntegerPower {
  template <class T>
  static T apply(T base, T exponent) {
    if constexpr (kIsSigned<T>) {
      if (exponent < 0) {
        if (base == 1) return 1;
        if (base == -1) return (exponent & 1) != 0 ? static_cast<T>(-1) : static_cast<T>(1);
        return 0;
      }
    }
    WideOf<T> square = static_cast<WideOf<T>>(base), result = 1;
    for (auto rest = static_cast<UnsignedOf<T>>(exponent); rest != 0; rest = static_cast<UnsignedOf<T>>(rest >> 1)) {
      if ((rest & 1) != 0) result *= square;
      square *= square;
    }
    return static_cast<T>(result);
  }
};
struct Maximum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      // One instruction each. They differ in equal zeros alone: +0 over -0.
      const T first = a > b ? a : b, second = b > a ? b : a;
      const T larger = from_bits<T>(bits_of(first) & bits_of(second));
      return __builtin_isunordered(a, b) ? canonical_nan<T>() : larger;
    } else {
      return a > b ? a : b;
    }
  }
};
struct Minimum {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kIsFloat<T>) {
      const T first = a < b ? a : b, second = b < a ? b : a;
      const T smaller = from_bits<T>(bits_of(first) | bits_of(second));  // -0 under +0
      return __builtin_isunordered(a, b) ? canonical_nan<T>() : smaller;
    } else {
      return a < b ? a : b;
    }
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct ShiftLeft {
  template <class T>
  static T apply(T a, T b) {
    const auto count = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(b));
    const WideOf<T> shifted = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(a)) << (count & (kBits<T> - 1));
    return static_cast<T>(count < kBits<T> ? shifted : 0);
  }
};
struct ShiftRightLogical {
  template <class T>
  static T apply(T a, T b) {
    const auto count = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(b));
    const WideOf<T> shifted = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(a)) >> (count & (kBits<T> - 1));
    return static_cast<T>(count < kBits<T> ? shifted : 0);
  }
};
struct ShiftRightArithmetic {
  template <class T>
  static T apply(T a, T b) {
    const auto count = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(b));
    return static_cast<T>(static_cast<SignedOf<T>>(a) >> (count < kBits<T> ? count : kBits<T> - 1));
  }
};

struct RotateLeft {  // by more than 0, and by less than the width
  template <class T>
  static T apply(T a, T b) {
    using U = UnsignedOf<T>;
    const auto bits = static_cast<WideOf<T>>(static_cast<U>(a));
    const auto count = static_cast<WideOf<T>>(static_cast<U>(b));
    return static_cast<T>(static_cast<U>((bits << count) | (bits >> (kBits<T> - count))));
  }
};

struct MultiplyAdd {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Multiply::apply(a, b), c);
  }
};
struct AddTwice {
  template <class T>
  static T apply(T a, T b, T c) {
    return Add::apply(Add::apply(a, b), c);
  }
};
struct RotateXor {
  template <class T>
  static T apply(T a, T b, T c) {
    return static_cast<T>(RotateLeft::apply(a, b) ^ c);
  }
};
struct WrapNegative {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a < T{} ? Add::apply(a, b) : a);
  }
};

// sqrt(a^2 + b^2) without overflow on the way, within 1.3 ulp. An infinity wins over a NaN.
struct Hypot {
  template <class T>
  static T apply(T a, T b) {
    constexpr bool kShort = sizeof(T) == 4;
    constexpr T kLarge = kShort ? T(0x1p60) : T(0x1p511), kSmall = kShort ? T(0x1p-40) : T(0x1p-459);
    constexpr T kDown = kShort ? T(0x1p-80) : T(0x1p-600), kUp = kShort ? T(0x1p100) : T(0x1p600);
    const T x = Abs::apply(a), y = Abs::apply(b), larger = x < y ? y : x;
    T scale = larger > kLarge ? kDown : T{1}, back = larger > kLarge ? 1 / kDown : T{1};
    scale = larger < kSmall ? kUp : scale;
    back = larger < kSmall ? 1 / kUp : back;
    const T u = x * scale, v = y * scale, size = Sqrt::apply(u * u + v * v) * back;
    constexpr T kInfinity = static_cast<T>(__builtin_inf());
    return (x == kInfinity) | (y == kInfinity) ? kInfinity : size;
  }
};

// Of vectors, comparisons give masks: all ones or all zeros for each item.
struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a != b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
  template <class V>
  static auto mask(V a, V b) {
    return a >= b;
  }
};

// Booleans are bytes. Any byte but 0 is true, and results are 0 or 1.
template <class Op>
struct Truth {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(Op::apply(static_cast<T>(a != 0)));
  }
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(Op::apply(static_cast<T>(a != 0), static_cast<T>(b != 0)));
  }
};

}  // namespace
}  // namespace shardwise
