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

struct Truthy {
  uint8_t byte;
};  // bool
struct Half {
  uint16_t bits;
};  // float16
struct Brain {
  uint16_t bits;
};  // bfloat16

// The types of the items of a table's columns (table.h), in order; complex numbers are pairs of items.
template <class... T>
struct Types {};
using ColumnTypes =
    Types<Truthy, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Half, Brain, float, double>;
using Integers = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>;
using Floats = Types<float, double>;
using Numbers = Types<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, float, double>;
using SignedNumbers = Types<int8_t, int16_t, int32_t, int64_t, float, double>;

template <class T, class... All>
constexpr int position_in(Types<All...>) {
  int position = 0;
  static_cast<void>(((__is_same(T, All) || (++position, false)) || ...));
  return position;
}
template <class T>
constexpr int kColumnOf = position_in<T>(ColumnTypes());

// By item size. Integers compute in `Wide`, an unsigned type of at least 32 bits, which wraps around and is not
// promoted.
template <class Unsigned, class Signed, class Wide>
struct Widths {
  using U = Unsigned;
  using S = Signed;
  using W = Wide;
};
template <size_t kBytes>
struct OfSize;
template <>
struct OfSize<1> : Widths<uint8_t, int8_t, uint32_t> {};
template <>
struct OfSize<2> : Widths<uint16_t, int16_t, uint32_t> {};
template <>
struct OfSize<4> : Widths<uint32_t, int32_t, uint32_t> {};
template <>
struct OfSize<8> : Widths<uint64_t, int64_t, uint64_t> {};
template <class T>
using UnsignedOf = typename OfSize<sizeof(T)>::U;
template <class T>
using SignedOf = typename OfSize<sizeof(T)>::S;
template <class T>
using WideOf = typename OfSize<sizeof(T)>::W;

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
template <class T>
constexpr T kLargest = kIsSigned<T> ? static_cast<T>(static_cast<UnsignedOf<T>>(-1) >> 1) : static_cast<T>(-1);
template <class T>
constexpr T kSmallest = kIsSigned<T> ? static_cast<T>(-kLargest<T> - 1) : static_cast<T>(0);
inline float cut(float x) { return __builtin_truncf(x); }
inline double cut(double x) { return __builtin_trunc(x); }

// A function as it is. Of vectors, a comparison gives masks: all ones or all zeros for each item. (GCC 12 needs the
// parentheses in `(a > b)`: it would take the sign for the end of the template's arguments.)
template <auto kFunction>
struct Plain {
  static auto apply(auto... lanes) { return kFunction(lanes...); }
};

// A function of floats, and of integers in WideOf, whose result wraps around.
template <auto kFunction>
struct Wrapped {
  template <class T, class... More>
  static T apply(T first, More... more) {
    if constexpr (kIsFloat<T>)
      return kFunction(first, more...);
    else
      return static_cast<T>(kFunction(static_cast<WideOf<T>>(first), static_cast<WideOf<T>>(more)...));
  }
};

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
using Not = Wrapped<[](auto x) { return ~x; }>;
using LogicalNot = Plain<[](auto x) { return x == 0; }>;
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
using Rsqrt = Plain<[](auto x) { return decltype(x){1} / Sqrt::apply(x); }>;
using IsFinite = Plain<[](auto x) { return x - x == 0; }>;
struct TotalOrderKey {
  template <class T>
  static SignedOf<T> apply(T x) {
    const auto bits = static_cast<SignedOf<T>>(bits_of(x));
    const auto magnitude = static_cast<SignedOf<T>>(~sign_bit<T>());
    return bits < 0 ? bits ^ magnitude : bits;
  }
};

// ---- binary --------------------------------------------------------------------------------------------------------

using Add = Wrapped<[](auto a, auto b) { return a + b; }>;
using Subtract = Wrapped<[](auto a, auto b) { return a - b; }>;
using Multiply = Wrapped<[](auto a, auto b) { return a * b; }>;
using And = Wrapped<[](auto a, auto b) { return a & b; }>;
using Or = Wrapped<[](auto a, auto b) { return a | b; }>;
using Xor = Wrapped<[](auto a, auto b) { return a ^ b; }>;

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
// The canonical NaN wins.
template <bool kMax>
struct Extremum {
  template <class T>
  static T apply(T a, T b) {
    const T first = (kMax ? a > b : a < b) ? a : b;
    if constexpr (!kIsFloat<T>) {
      return first;
    } else {
      // One instruction each. They differ only in equal zeros: +0 over -0.
      const T second = (kMax ? b > a : b < a) ? b : a;
      const auto bits = kMax ? bits_of(first) & bits_of(second) : bits_of(first) | bits_of(second);
      return __builtin_isunordered(a, b) ? canonical_nan<T>() : from_bits<T>(bits);
    }
  }
};
using Maximum = Extremum<true>;
using Minimum = Extremum<false>;

// By the width or more: 0.
template <auto kShift>
struct Shift {
  template <class T>
  static T apply(T a, T b) {
    const auto bits = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(a));
    const auto count = static_cast<WideOf<T>>(static_cast<UnsignedOf<T>>(b));
    return static_cast<T>(count < kBits<T> ? kShift(bits, count & (kBits<T> - 1)) : 0);
  }
};
using ShiftLeft = Shift<[](auto bits, auto count) { return bits << count; }>;
using ShiftRightLogical = Shift<[](auto bits, auto count) { return (bits >> count); }>;
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

using MultiplyAdd = Plain<[](auto a, auto b, auto c) { return Add::apply(Multiply::apply(a, b), c); }>;
using AddTwice = Plain<[](auto a, auto b, auto c) { return Add::apply(Add::apply(a, b), c); }>;
using RotateXor = Plain<[](auto a, auto b, auto c) { return Xor::apply(RotateLeft::apply(a, b), c); }>;
using WrapNegative = Plain<[](auto a, auto b) { return a < 0 ? Add::apply(a, b) : a; }>;

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

using Equal = Plain<[](auto a, auto b) { return a == b; }>;
using NotEqual = Plain<[](auto a, auto b) { return a != b; }>;
using Less = Plain<[](auto a, auto b) { return a < b; }>;
using LessEqual = Plain<[](auto a, auto b) { return a <= b; }>;
using Greater = Plain<[](auto a, auto b) { return (a > b); }>;
using GreaterEqual = Plain<[](auto a, auto b) { return (a >= b); }>;

// Booleans are bytes. Any byte but 0 is true, and results are 0 or 1.
template <class Op>
struct Truth {
  template <class T, class... More>
  static T apply(T first, More... more) {
    return static_cast<T>(Op::apply(static_cast<T>(first != 0), static_cast<T>(more != 0)...));
  }
};

}  // namespace
}  // namespace shardwise
