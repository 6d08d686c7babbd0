// SPDX-License-Identifier: Apache-2.0
//
// Loops over lanes, and how they become a TileTable. Each simd_<isa>.cpp names its vectors and its SLEEF functions,
// includes this file, and is compiled with the flags of its instruction set:
//
//   #define VECTOR_F32 __m256
//   #define SLEEF_F32(stem, ulp) Sleef_finz_##stem##f8_u##ulp##avx2      // SLEEF_F32(tan, 10): 8 lanes, error 1.0
//   #include "shardwise/tile/simd.h"                                     // kTable, from the rows of functions.def
//
// Only C headers, SLEEF and plain data may be included, and everything is in an unnamed namespace: see table.h.
#pragma once

#include "shardwise/tile/simd_convert.h"
#include "shardwise/tile/simd_fourier.h"
#include "shardwise/tile/simd_lines.h"
#include "shardwise/tile/simd_masks.h"
#include "shardwise/tile/simd_reductions.h"
#include "shardwise/tile/simd_scalar.h"
#include "shardwise/tile/table.h"

namespace shardwise {
namespace {

enum Column { kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64, kC64, kC128 };

// Calls `body(i)` for each lane. Lane i accesses only index i, which ivdep asserts. The inner loop has no tail.
template <class F>
inline __attribute__((always_inline)) void for_each_lane(int64_t lanes, F body) {
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
#pragma GCC ivdep
    for (int64_t i = 0; i < kLaneBlock; ++i) body(block + i);
  }
}

template <class Op, class T, class R>
void unary(void* out, const void* a, const void*, const void*, int64_t lanes) {
  R* r = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = Op::apply(x[i]); });
}

template <class Op, class T, class R>
void binary(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  R* r = static_cast<R*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = static_cast<R>(Op::apply(x[i], y[i])); });
}

template <class Op, class T, class R>
void test(void* out, const void* a, const void*, const void*, int64_t lanes) {
  if constexpr (kPacksMasks<T>) {
    const T* x = static_cast<const T*>(a);
    write_truths<T>(static_cast<uint8_t*>(out), lanes,
                    [=](int64_t i) __attribute__((always_inline)) { return Op::mask(read<RegisterOf<T>>(x + i)); });
  } else {
    unary<Op, T, R>(out, a, nullptr, nullptr, lanes);
  }
}

template <class Op, class T>
void compare(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  if constexpr (kPacksMasks<T>) {
    const T* x = static_cast<const T*>(a);
    const T* y = static_cast<const T*>(b);
    write_truths<T>(static_cast<uint8_t*>(out), lanes, [=](int64_t i) __attribute__((always_inline)) {
      return Op::mask(read<RegisterOf<T>>(x + i), read<RegisterOf<T>>(y + i));
    });
  } else {
    binary<Op, T, uint8_t>(out, a, b, nullptr, lanes);
  }
}

template <class Op, class T>
void ternary(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const T* z = static_cast<const T*>(c);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = Op::apply(x[i], y[i], z[i]); });
}

// Whole numbers up to 2^51 as doubles, and back: by additions, because AVX2 converts no integers of 64 bits.
inline constexpr double kWholeOffset = 0x1.8p52;
inline double as_double(int64_t x) {
  return from_bits<double>(static_cast<uint64_t>(x) + __builtin_bit_cast(uint64_t, kWholeOffset)) - kWholeOffset;
}
inline int64_t as_integer(double x) {
  return static_cast<int64_t>(bits_of(x + kWholeOffset) - __builtin_bit_cast(uint64_t, kWholeOffset));
}

// Integers of 64 bits: blocks of small ones in double precision, which is exact (simd_scalar.h).
template <class Op, class T>
void divide_long(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    T* r = static_cast<T*>(out) + block;
    const T* x = static_cast<const T*>(a) + block;
    const T* y = static_cast<const T*>(b) + block;
    uint64_t bits = 0;
    for (int64_t i = 0; i < kLaneBlock; ++i) {
      bits |= static_cast<uint64_t>(x[i] < 0 ? Negate::apply(x[i]) : x[i]);
      bits |= static_cast<uint64_t>(y[i] < 0 ? Negate::apply(y[i]) : y[i]);
    }
    if (bits >> 51 != 0) {
      for (int64_t i = 0; i < kLaneBlock; ++i) r[i] = Op::apply(x[i], y[i]);
      continue;
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < kLaneBlock; ++i) {
      const double by = y[i] == 0 ? 1.0 : as_double(static_cast<int64_t>(y[i]));
      const double quotient = cut(as_double(static_cast<int64_t>(x[i])) / by);
      r[i] = Op::of_quotient(x[i], y[i], static_cast<T>(as_integer(quotient)));
    }
  }
}

// minimum(maximum(x, low), high).
template <class T>
inline __attribute__((always_inline)) RegisterOf<T> clamped(RegisterOf<T> low, RegisterOf<T> x, RegisterOf<T> high) {
  using V = RegisterOf<T>;
  if constexpr (kIsFloat<T>) {
    using Bits = RegisterOf<SignedOf<T>>;
    const auto both = [](V a, V b) { return __builtin_bit_cast(Bits, a) & __builtin_bit_cast(Bits, b); };
    const auto either = [](V a, V b) { return __builtin_bit_cast(Bits, a) | __builtin_bit_cast(Bits, b); };
    // As in Maximum and Minimum: the two differ in equal zeros alone.
    const V raised = __builtin_bit_cast(V, both(x > low ? x : low, low > x ? low : x));
    const V result = __builtin_bit_cast(V, either(raised < high ? raised : high, high < raised ? high : raised));
    return (x == x) & (low == low) & (high == high) ? result : V{} + canonical_nan<T>();
  } else {
    const V raised = x > low ? x : low;
    return raised < high ? raised : high;
  }
}

template <class T>
void clamp(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  using V = RegisterOf<T>;
  T* r = static_cast<T*>(out);
  const T* low = static_cast<const T*>(a);
  const T* x = static_cast<const T*>(b);
  const T* high = static_cast<const T*>(c);
  for (int64_t i = 0; i < lanes; i += kRegisterItems<T>) {
    const V result = clamped<T>(read<V>(low + i), read<V>(x + i), read<V>(high + i));
    memcpy(r + i, &result, sizeof result);
  }
}

template <class Lo, class Hi>
void clamp_bool(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  uint8_t* r = static_cast<uint8_t*>(out);
  const uint8_t* low = static_cast<const uint8_t*>(a);
  const uint8_t* x = static_cast<const uint8_t*>(b);
  const uint8_t* high = static_cast<const uint8_t*>(c);
  for_each_lane(lanes,
                [=](int64_t i) __attribute__((always_inline)) { r[i] = Hi::apply(Lo::apply(x[i], low[i]), high[i]); });
}

template <class T>
void select(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  T* r = static_cast<T*>(out);
  const uint8_t* which = static_cast<const uint8_t*>(a);
  const T* x = static_cast<const T*>(b);
  const T* y = static_cast<const T*>(c);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = which[i] != 0 ? x[i] : y[i]; });
}

template <class T>
void copy(void* out, const void* a, const void*, const void*, int64_t lanes) {
  memmove(out, a, static_cast<size_t>(lanes) * sizeof(T));
}

// Complex numbers are pairs of adjacent items.
template <class T, int kPart>
void part_of(void* out, const void* a, const void*, const void*, int64_t lanes) {
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = x[2 * i + kPart]; });
}

template <class T>
void join_parts(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) {
    r[2 * i] = x[i];
    r[2 * i + 1] = y[i];
  });
}

// A kernel of real numbers, for both parts of each number.
template <TileKernel kKernel>
void on_parts(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  kKernel(out, a, b, c, 2 * lanes);
}

template <class T>
inline __attribute__((always_inline)) RegisterOf<SignedOf<T>> imaginary_lanes() {
  RegisterOf<SignedOf<T>> lanes{};
  for (int i = 0; i < static_cast<int>(kRegisterItems<T>); ++i) lanes[i] = -(i % 2);
  return lanes;
}

template <class T>
void complex_multiply(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  using V = RegisterOf<T>;
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const T* y = static_cast<const T*>(b);
  const auto is_imaginary = imaginary_lanes<T>();
  for (int64_t i = 0; i < 2 * lanes; i += kRegisterItems<T>) {
    const V u = read<V>(x + i), v = read<V>(y + i);
    const V by_real = permuted<T>(u, [](int k) { return k & ~1; }) * v;
    const V by_imag = permuted<T>(u, [](int k) { return k | 1; }) * permuted<T>(v, [](int k) { return k ^ 1; });
    const V product = is_imaginary ? by_real + by_imag : by_real - by_imag;
    memcpy(r + i, &product, sizeof product);
  }
}

template <class T>
void conjugate(void* out, const void* a, const void*, const void*, int64_t lanes) {
  using V = RegisterOf<T>;
  using Bits = RegisterOf<SignedOf<T>>;
  T* r = static_cast<T*>(out);
  const T* x = static_cast<const T*>(a);
  const Bits signs = imaginary_lanes<T>() & static_cast<SignedOf<T>>(sign_bit<T>());
  for (int64_t i = 0; i < 2 * lanes; i += kRegisterItems<T>) {
    const Bits turned = __builtin_bit_cast(Bits, read<V>(x + i)) ^ signs;
    memcpy(r + i, &turned, sizeof turned);
  }
}

// ---- vector functions ----------------------------------------------------------------------------------------------

template <class L, auto Function>
void vector_unary(void* out, const void* a, const void*, const void*, int64_t lanes) {
  typename L::T* r = static_cast<typename L::T*>(out);
  const typename L::T* x = static_cast<const typename L::T*>(a);
  for (int64_t i = 0; i < lanes; i += static_cast<int64_t>(sizeof(typename L::V) / sizeof(typename L::T))) {
    typename L::V v;
    memcpy(&v, x + i, sizeof v);
    v = Function(v);
    memcpy(r + i, &v, sizeof v);
  }
}

template <class L, auto Function>
void vector_binary(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  typename L::T* r = static_cast<typename L::T*>(out);
  const typename L::T* x = static_cast<const typename L::T*>(a);
  const typename L::T* y = static_cast<const typename L::T*>(b);
  for (int64_t i = 0; i < lanes; i += static_cast<int64_t>(sizeof(typename L::V) / sizeof(typename L::T))) {
    typename L::V v, w;
    memcpy(&v, x + i, sizeof v);
    memcpy(&w, y + i, sizeof w);
    v = Function(v, w);
    memcpy(r + i, &v, sizeof v);
  }
}

// e^-|x| never overflows, so both tails keep their precision: 1 / (1 + e^-x) and e^x / (1 + e^x).
template <class L, auto Exp>
void logistic(void* out, const void* a, const void*, const void*, int64_t lanes) {
  using T = typename L::T;
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    const T* x = static_cast<const T*>(a) + block;
    T* r = static_cast<T*>(out) + block;
    T decay[kLaneBlock];
    for (int64_t i = 0; i < kLaneBlock; ++i) decay[i] = -Abs::apply(x[i]);
    vector_unary<L, Exp>(decay, decay, nullptr, nullptr, kLaneBlock);
#pragma GCC ivdep
    for (int64_t i = 0; i < kLaneBlock; ++i) r[i] = (x[i] >= 0 ? T{1} : decay[i]) / (T{1} + decay[i]);
  }
}

// StableHLO has no exp2: it is a power of 2, whose logarithm needs no computing. Each lane decides on its own, so that
// its bits do not depend on its neighbors.
template <class L, auto Power, auto Exp2>
void power(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  using T = typename L::T;
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    const T* x = static_cast<const T*>(a) + block;
    const T* y = static_cast<const T*>(b) + block;
    T* r = static_cast<T*>(out) + block;
    T of_two[kLaneBlock];
    SignedOf<T> is_two[kLaneBlock], count = 0;
    for (int64_t i = 0; i < kLaneBlock; ++i) {
      is_two[i] = x[i] == T{2};
      count += is_two[i];
    }
    if (count != 0) vector_unary<L, Exp2>(of_two, y, nullptr, nullptr, kLaneBlock);
    if (count == kLaneBlock) {
      memcpy(r, of_two, sizeof of_two);
      continue;
    }
    vector_binary<L, Power>(r, x, y, nullptr, kLaneBlock);
    if (count == 0) continue;
    for (int64_t i = 0; i < kLaneBlock; ++i) r[i] = is_two[i] != 0 ? of_two[i] : r[i];
  }
}

// For large |x|, where SLEEF overflows too early: before() computes the argument of a helper function, and after()
// converts the result to the magnitude of ours.
struct LogOnce {  // log1p(x) = log(x)
  template <class T>
  static constexpr T kLarge = sizeof(T) == 4 ? T(0x1p30) : T(0x1p60);
  template <class T>
  static T before(T x) {
    return x;
  }
  template <class T>
  static T after(T log) {
    return log;
  }
};
struct LogTwice : LogOnce {  // asinh(x) = acosh(x) = log(2 x)
  template <class T>
  static T after(T log) {
    return log + T(0.693147180559945309417);
  }
};
struct ExpHalf {  // sinh(x) = cosh(x) = e^x / 2, where e^x alone may overflow
  template <class T>
  static constexpr T kLarge = sizeof(T) == 4 ? T(88) : T(709);
  template <class T>
  static T before(T x) {
    return x * T(0.5);
  }
  template <class T>
  static T after(T root) {
    return (root * T(0.5)) * root;
  }
};

template <class L, class Large, auto Function, auto Helper>
void with_large(void* out, const void* a, const void*, const void*, int64_t lanes) {
  using T = typename L::T;
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
    T magnitude[kLaneBlock], large[kLaneBlock];
    const T* x = static_cast<const T*>(a) + block;
    T* r = static_cast<T*>(out) + block;
    bool any = false;
    for (int64_t i = 0; i < kLaneBlock; ++i) {
      magnitude[i] = Abs::apply(x[i]);
      any |= magnitude[i] > Large::template kLarge<T>;
    }
    vector_unary<L, Function>(r, x, nullptr, nullptr, kLaneBlock);
    if (!any) continue;
    for (int64_t i = 0; i < kLaneBlock; ++i) large[i] = Large::before(magnitude[i]);
    vector_unary<L, Helper>(large, large, nullptr, nullptr, kLaneBlock);
    for (int64_t i = 0; i < kLaneBlock; ++i) {
      const bool replace = (magnitude[i] > Large::template kLarge<T>)&(r[i] == r[i]);
      r[i] = replace ? with_sign_of(Large::after(large[i]), r[i]) : r[i];
    }
  }
}

// ---- the table -----------------------------------------------------------------------------------------------------

struct Unary {
  template <class Op, class T>
  static constexpr TileKernel kernel = unary<Op, T, T>;
};
struct Binary {
  template <class Op, class T>
  static constexpr TileKernel kernel = binary<Op, T, T>;
};
struct Ternary {
  template <class Op, class T>
  static constexpr TileKernel kernel = ternary<Op, T>;
};
struct Predicate {
  template <class Op, class T>
  static constexpr TileKernel kernel = test<Op, T, uint8_t>;
};
struct Comparison {
  template <class Op, class T>
  static constexpr TileKernel kernel = compare<Op, T>;
};
struct Clamp {
  template <class Op, class T>
  static constexpr TileKernel kernel = clamp<T>;
};

constexpr TileKernel& at(TileTable& table, TileCode code, Column column) {
  return table.code[static_cast<int>(code)][column];
}

template <class Kind, class Op>
constexpr void set_floats(TileTable& table, TileCode code) {
  at(table, code, kF32) = Kind::template kernel<Op, float>;
  at(table, code, kF64) = Kind::template kernel<Op, double>;
}
template <class Kind, class Op>
constexpr void set_signed(TileTable& table, TileCode code) {
  at(table, code, kI8) = Kind::template kernel<Op, int8_t>;
  at(table, code, kI16) = Kind::template kernel<Op, int16_t>;
  at(table, code, kI32) = Kind::template kernel<Op, int32_t>;
  at(table, code, kI64) = Kind::template kernel<Op, int64_t>;
}
template <class Kind, class Op>
constexpr void set_integers(TileTable& table, TileCode code) {
  set_signed<Kind, Op>(table, code);
  at(table, code, kU8) = Kind::template kernel<Op, uint8_t>;
  at(table, code, kU16) = Kind::template kernel<Op, uint16_t>;
  at(table, code, kU32) = Kind::template kernel<Op, uint32_t>;
  at(table, code, kU64) = Kind::template kernel<Op, uint64_t>;
}
template <class Kind, class Op>
constexpr void set_numbers(TileTable& table, TileCode code) {
  set_integers<Kind, Op>(table, code);
  set_floats<Kind, Op>(table, code);
}
template <class Kind, class Op>
constexpr void set_parts(TileTable& table, TileCode code) {
  at(table, code, kC64) = on_parts<Kind::template kernel<Op, float>>;
  at(table, code, kC128) = on_parts<Kind::template kernel<Op, double>>;
}
template <class Kind, class Op>
constexpr void set_bool(TileTable& table, TileCode code) {
  at(table, code, kBool) = Kind::template kernel<Truth<Op>, uint8_t>;
}

template <class... Columns>
constexpr void set_columns(TileTable& table, TileCode code, TileKernel kernel, Columns... columns) {
  ((at(table, code, columns) = kernel), ...);
}

// Kernels that depend on the width alone: bool, i8 and u8 share one, and so on.
template <template <class> class Make>
constexpr void set_widths(TileTable& table, TileCode code) {
  set_columns(table, code, Make<uint8_t>::kernel, kBool, kI8, kU8);
  set_columns(table, code, Make<uint16_t>::kernel, kI16, kU16, kF16, kBF16);
  set_columns(table, code, Make<uint32_t>::kernel, kI32, kU32, kF32);
  set_columns(table, code, Make<uint64_t>::kernel, kI64, kU64, kF64);
}
template <class T>
struct CopyOf {
  static constexpr TileKernel kernel = copy<T>;
};
template <class T>
struct SelectOf {
  static constexpr TileKernel kernel = select<T>;
};

template <class From>
constexpr void set_converts(TileTable& table, Column from) {
  TileKernel* row = table.convert[from];
  row[kBool] = test<Convert<From, Truthy>, From, Truthy>;
  row[kI8] = unary<Convert<From, int8_t>, From, int8_t>;
  row[kI16] = unary<Convert<From, int16_t>, From, int16_t>;
  row[kI32] = unary<Convert<From, int32_t>, From, int32_t>;
  row[kI64] = unary<Convert<From, int64_t>, From, int64_t>;
  row[kU8] = unary<Convert<From, uint8_t>, From, uint8_t>;
  row[kU16] = unary<Convert<From, uint16_t>, From, uint16_t>;
  row[kU32] = unary<Convert<From, uint32_t>, From, uint32_t>;
  row[kU64] = unary<Convert<From, uint64_t>, From, uint64_t>;
  row[kF32] = unary<Convert<From, float>, From, float>;
  row[kF64] = unary<Convert<From, double>, From, double>;
}

constexpr void set_all_converts(TileTable& table) {
  set_converts<Truthy>(table, kBool);
  set_converts<int8_t>(table, kI8);
  set_converts<int16_t>(table, kI16);
  set_converts<int32_t>(table, kI32);
  set_converts<int64_t>(table, kI64);
  set_converts<uint8_t>(table, kU8);
  set_converts<uint16_t>(table, kU16);
  set_converts<uint32_t>(table, kU32);
  set_converts<uint64_t>(table, kU64);
  set_converts<float>(table, kF32);
  set_converts<double>(table, kF64);
  table.convert[kF16][kF32] = unary<Convert<Half, float>, Half, float>;
  table.convert[kBF16][kF32] = unary<Convert<Brain, float>, Brain, float>;
  table.convert[kF32][kF16] = unary<Convert<float, Half>, float, Half>;
  table.convert[kF32][kBF16] = unary<Convert<float, Brain>, float, Brain>;
  table.convert[kF64][kF16] = unary<Convert<double, Half>, double, Half>;
  table.convert[kF64][kBF16] = unary<Convert<double, Brain>, double, Brain>;
}

constexpr void set_math(TileTable& table, TileCode code, TileKernel f32, TileKernel f64) {
  at(table, code, kF32) = f32;
  at(table, code, kF64) = f64;
}

struct F32 {
  using T = float;
  using V = VECTOR_F32;
};
struct F64 {
  using T = double;
  using V = VECTOR_F64;
};

// The kernels of `code`: one macro for each way that a row of functions.def names them.
#define KERNELS_by_width(Make) set_widths<Make>(table, code)
#define KERNELS_clamps()                    \
  set_numbers<Clamp, Maximum>(table, code); \
  at(table, code, kBool) = clamp_bool<Truth<Or>, Truth<And>>
#define KERNELS_converts() set_all_converts(table)
#define KERNELS_order_keys()                                    \
  at(table, code, kF32) = unary<TotalOrderKey, float, int32_t>; \
  at(table, code, kF64) = unary<TotalOrderKey, double, int64_t>
#define KERNELS_complex_part(kPart)              \
  at(table, code, kC64) = part_of<float, kPart>; \
  at(table, code, kC128) = part_of<double, kPart>
#define KERNELS_conjugates()                \
  at(table, code, kC64) = conjugate<float>; \
  at(table, code, kC128) = conjugate<double>
#define KERNELS_complex_of_parts()           \
  at(table, code, kF32) = join_parts<float>; \
  at(table, code, kF64) = join_parts<double>
#define KERNELS_divides(Op)                         \
  set_numbers<Binary, Op>(table, code);             \
  at(table, code, kI64) = divide_long<Op, int64_t>; \
  at(table, code, kU64) = divide_long<Op, uint64_t>
#define KERNELS_floats(Kind, Op) set_floats<Kind, Op>(table, code)
#define KERNELS_integers(Kind, Op) set_integers<Kind, Op>(table, code)
#define KERNELS_numbers(Kind, Op) set_numbers<Kind, Op>(table, code)
#define KERNELS_numbers_and_parts(Kind, Op) \
  set_numbers<Kind, Op>(table, code);       \
  set_parts<Kind, Op>(table, code)
#define KERNELS_signed_numbers(Kind, Op) \
  set_signed<Kind, Op>(table, code);     \
  set_floats<Kind, Op>(table, code)
#define KERNELS_integers_and_bool(Kind, Op, BoolOp) \
  set_integers<Kind, Op>(table, code);              \
  set_bool<Kind, BoolOp>(table, code)
#define KERNELS_numbers_and_bool(Kind, Op, BoolOp) \
  set_numbers<Kind, Op>(table, code);              \
  set_bool<Kind, BoolOp>(table, code)
#define KERNELS_numbers_and_bool_and_parts(Kind, Op, BoolOp) \
  KERNELS_numbers_and_bool(Kind, Op, BoolOp);                \
  set_parts<Kind, Op>(table, code)
#define KERNELS_products(Op, BoolOp)               \
  KERNELS_numbers_and_bool(Binary, Op, BoolOp);    \
  at(table, code, kC64) = complex_multiply<float>; \
  at(table, code, kC128) = complex_multiply<double>
#define KERNELS_comparison(Op)              \
  set_numbers<Comparison, Op>(table, code); \
  set_bool<Comparison, Op>(table, code)
#define KERNELS_sleef(stem, ulp) \
  set_math(table, code, vector_unary<F32, SLEEF_F32(stem, ulp)>, vector_unary<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_binary(stem, ulp) \
  set_math(table, code, vector_binary<F32, SLEEF_F32(stem, ulp)>, vector_binary<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_power(stem, ulp, of_two, Op)                                \
  set_math(table, code, power<F32, SLEEF_F32(stem, ulp), SLEEF_F32(of_two, ulp)>, \
           power<F64, SLEEF_F64(stem, ulp), SLEEF_F64(of_two, ulp)>);             \
  set_integers<Binary, Op>(table, code)
#define KERNELS_sleef_logistic(stem, ulp) \
  set_math(table, code, logistic<F32, SLEEF_F32(stem, ulp)>, logistic<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_large(Large, stem, ulp, helper)                                         \
  set_math(table, code, with_large<F32, Large, SLEEF_F32(stem, ulp), SLEEF_F32(helper, ulp)>, \
           with_large<F64, Large, SLEEF_F64(stem, ulp), SLEEF_F64(helper, ulp)>)

// clang-format off
constexpr TileTable make_table() {
  TileTable all{};
  all.lines = make_lines();
  all.lines.fourier_f32 = make_fourier<float>();
  all.lines.fourier_f64 = make_fourier<double>();
#define ROW(Code, operands, accepts, loops, ...) \
  [](TileTable& table, [[maybe_unused]] TileCode code) { KERNELS_##loops; }(all, TileCode::k##Code);
#define FUNCTION ROW
#define TILE_ONLY ROW
#include "shardwise/tile/functions.def"
#undef ROW
  return all;
}
// clang-format on

constexpr TileTable kTable = make_table();
constexpr ReductionTable kReductions = make_reductions();

}  // namespace
}  // namespace shardwise
