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

#define INLINE inline __attribute__((always_inline))

// Calls `body(i)` for each lane. Lane i accesses only index i, which ivdep asserts. The inner loop has no tail.
template <class F>
INLINE void for_each_lane(int64_t lanes, F body) {
  for (int64_t block = 0; block < lanes; block += kLaneBlock) {
#pragma GCC ivdep
    for (int64_t i = 0; i < kLaneBlock; ++i) body(block + i);
  }
}

// Writes f(item i of each operand), as an R, for each lane i. The operands have items of T.
template <class R, class T, class F, class... Operands>
INLINE void map_lanes(F f, int64_t lanes, void* out, Operands... operands) {
  R* r = static_cast<R*>(out);
  for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) {
    r[i] = static_cast<R>(f(static_cast<const T*>(operands)[i]...));
  });
}

// Writes f(vector of each operand) for each vector V of adjacent items of T.
template <class V, class T, class F, class... Operands>
INLINE void map_vectors(F f, int64_t items, void* out, Operands... operands) {
  T* r = static_cast<T*>(out);
  for (int64_t i = 0; i < items; i += static_cast<int64_t>(sizeof(V) / sizeof(T))) {
    const V result = f(read<V>(static_cast<const T*>(operands) + i)...);
    memcpy(r + i, &result, sizeof result);
  }
}

// Writes truths, 0 or 1: Op gives bools of items, and masks of vectors.
template <class Op, class T, class R, class... Operands>
INLINE void map_truths(int64_t lanes, void* out, Operands... operands) {
  if constexpr (kPacksMasks<T>) {
    write_truths<T>(static_cast<uint8_t*>(out), lanes, [=](int64_t i) __attribute__((always_inline)) {
      return Op::apply(read<RegisterOf<T>>(static_cast<const T*>(operands) + i)...);
    });
  } else {
    map_lanes<R, T>([](auto... x) { return Op::apply(x...); }, lanes, out, operands...);
  }
}

// ---- loops: what a row of functions.def names, for any function of a lane --------------------------------------------

struct Unary {
  template <class Op, class T, class R = T>
  static void kernel(void* out, const void* a, const void*, const void*, int64_t lanes) {
    map_lanes<R, T>([](T x) { return Op::apply(x); }, lanes, out, a);
  }
};
struct Binary {
  template <class Op, class T>
  static void kernel(void* out, const void* a, const void* b, const void*, int64_t lanes) {
    map_lanes<T, T>([](T x, T y) { return Op::apply(x, y); }, lanes, out, a, b);
  }
};
struct Ternary {
  template <class Op, class T>
  static void kernel(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
    map_lanes<T, T>([](T x, T y, T z) { return Op::apply(x, y, z); }, lanes, out, a, b, c);
  }
};
struct Predicate {
  template <class Op, class T, class R = uint8_t>
  static void kernel(void* out, const void* a, const void*, const void*, int64_t lanes) {
    map_truths<Op, T, R>(lanes, out, a);
  }
};
struct Comparison {
  template <class Op, class T>
  static void kernel(void* out, const void* a, const void* b, const void*, int64_t lanes) {
    map_truths<Op, T, uint8_t>(lanes, out, a, b);
  }
};

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

// minimum(maximum(x, low), high), of vectors.
struct Clamp {
  template <class Op, class T>
  static void kernel(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
    using V = RegisterOf<T>;
    const auto clamped = [](V low, V x, V high) __attribute__((always_inline)) -> V {
      if constexpr (kIsFloat<T>) {
        using Bits = RegisterOf<SignedOf<T>>;
        const auto both = [](V p, V q) { return __builtin_bit_cast(Bits, p) & __builtin_bit_cast(Bits, q); };
        const auto either = [](V p, V q) { return __builtin_bit_cast(Bits, p) | __builtin_bit_cast(Bits, q); };
        // As in Maximum and Minimum: the two differ only in equal zeros.
        const V raised = __builtin_bit_cast(V, both(x > low ? x : low, low > x ? low : x));
        const V result = __builtin_bit_cast(V, either(raised < high ? raised : high, high < raised ? high : raised));
        return (x == x) & (low == low) & (high == high) ? result : V{} + canonical_nan<T>();
      } else {
        const V raised = x > low ? x : low;
        return raised < high ? raised : high;
      }
    };
    map_vectors<V, T>(clamped, lanes, out, a, b, c);
  }
};

inline void clamp_bool(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
  const auto clamped = [](uint8_t low, uint8_t x, uint8_t high) {
    return Truth<And>::apply(Truth<Or>::apply(x, low), high);
  };
  map_lanes<uint8_t, uint8_t>(clamped, lanes, out, a, b, c);
}

template <class T>
struct SelectOf {
  static void kernel(void* out, const void* a, const void* b, const void* c, int64_t lanes) {
    T* r = static_cast<T*>(out);
    const uint8_t* which = static_cast<const uint8_t*>(a);
    const T* x = static_cast<const T*>(b);
    const T* y = static_cast<const T*>(c);
    for_each_lane(lanes, [=](int64_t i) __attribute__((always_inline)) { r[i] = which[i] != 0 ? x[i] : y[i]; });
  }
};

template <class T>
struct CopyOf {
  static void kernel(void* out, const void* a, const void*, const void*, int64_t lanes) {
    memmove(out, a, static_cast<size_t>(lanes) * sizeof(T));
  }
};

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
  const auto is_imaginary = imaginary_lanes<T>();
  const auto product = [=](V u, V v) __attribute__((always_inline)) -> V {
    const V by_real = permuted<T>(u, [](int k) { return k & ~1; }) * v;
    const V by_imag = permuted<T>(u, [](int k) { return k | 1; }) * permuted<T>(v, [](int k) { return k ^ 1; });
    return is_imaginary ? by_real + by_imag : by_real - by_imag;
  };
  map_vectors<V, T>(product, 2 * lanes, out, a, b);
}

template <class T>
void conjugate(void* out, const void* a, const void*, const void*, int64_t lanes) {
  using Bits = RegisterOf<SignedOf<T>>;
  const Bits signs = imaginary_lanes<T>() & static_cast<SignedOf<T>>(sign_bit<T>());
  map_vectors<Bits, T>([=](Bits x) __attribute__((always_inline)) { return x ^ signs; }, 2 * lanes, out, a);
}

// ---- vector functions ----------------------------------------------------------------------------------------------

template <class L, auto Function>
void vector_unary(void* out, const void* a, const void*, const void*, int64_t lanes) {
  using V = typename L::V;
  map_vectors<V, typename L::T>([](V x) { return Function(x); }, lanes, out, a);
}

template <class L, auto Function>
void vector_binary(void* out, const void* a, const void* b, const void*, int64_t lanes) {
  using V = typename L::V;
  map_vectors<V, typename L::T>([](V x, V y) { return Function(x, y); }, lanes, out, a, b);
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

enum { kColumnC64 = kColumnOf<double> + 1, kColumnC128 };  // after those of all items

constexpr TileKernel& at(TileTable& table, TileCode code, int column) {
  return table.code[static_cast<int>(code)][column];
}

template <class Kind, class Op, class... T>
constexpr void set(TileTable& table, TileCode code, Types<T...>) {
  ((at(table, code, kColumnOf<T>) = Kind::template kernel<Op, T>), ...);
}
template <class Kind, class Op>
constexpr void set_bool(TileTable& table, TileCode code) {
  at(table, code, kColumnOf<Truthy>) = Kind::template kernel<Truth<Op>, uint8_t>;
}
constexpr void set_reals(TileTable& table, TileCode code, TileKernel f32, TileKernel f64) {
  at(table, code, kColumnOf<float>) = f32;
  at(table, code, kColumnOf<double>) = f64;
}
constexpr void set_complex(TileTable& table, TileCode code, TileKernel c64, TileKernel c128) {
  at(table, code, kColumnC64) = c64;
  at(table, code, kColumnC128) = c128;
}

// Kernels that depend only on the width: bool, i8 and u8 share one, and so on.
template <template <class> class Make, class... T>
constexpr void set_widths(TileTable& table, TileCode code, Types<T...>) {
  ((at(table, code, kColumnOf<T>) = Make<UnsignedOf<T>>::kernel), ...);
}

template <class From, class To>
constexpr TileKernel conversion() {
  if constexpr (__is_same(To, Truthy))
    return Predicate::kernel<Convert<From, To>, From, To>;
  else
    return Unary::kernel<Convert<From, To>, From, To>;
}
template <class From, class... To>
constexpr void set_conversions(TileTable& table, Types<To...>) {
  ((table.convert[kColumnOf<From>][kColumnOf<To>] = conversion<From, To>()), ...);
}
template <class... From>
constexpr void set_all_conversions(TileTable& table, Types<From...>) {
  (set_conversions<From>(table, Types<Truthy, From...>()), ...);
  set_conversions<Truthy>(table, Types<Truthy, From...>());
  set_conversions<Half>(table, Types<float>());
  set_conversions<Brain>(table, Types<float>());
  set_conversions<float>(table, Types<Half, Brain>());
  set_conversions<double>(table, Types<Half, Brain>());
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
#define KERNELS_by_width(Make) set_widths<Make>(table, code, ColumnTypes())
#define KERNELS_clamps()                    \
  set<Clamp, void>(table, code, Numbers()); \
  at(table, code, kColumnOf<Truthy>) = clamp_bool
#define KERNELS_converts() set_all_conversions(table, Numbers())
#define KERNELS_order_keys() \
  set_reals(table, code, Unary::kernel<TotalOrderKey, float, int32_t>, Unary::kernel<TotalOrderKey, double, int64_t>)
#define KERNELS_complex_part(kPart) set_complex(table, code, part_of<float, kPart>, part_of<double, kPart>)
#define KERNELS_conjugates() set_complex(table, code, conjugate<float>, conjugate<double>)
#define KERNELS_complex_of_parts() set_reals(table, code, join_parts<float>, join_parts<double>)
#define KERNELS_divides(Op)                                       \
  set<Binary, Op>(table, code, Numbers());                        \
  at(table, code, kColumnOf<int64_t>) = divide_long<Op, int64_t>; \
  at(table, code, kColumnOf<uint64_t>) = divide_long<Op, uint64_t>
#define KERNELS_floats(Kind, Op) set<Kind, Op>(table, code, Floats())
#define KERNELS_integers(Kind, Op) set<Kind, Op>(table, code, Integers())
#define KERNELS_numbers(Kind, Op) set<Kind, Op>(table, code, Numbers())
#define KERNELS_numbers_and_parts(Kind, Op) \
  set<Kind, Op>(table, code, Numbers());    \
  set_complex(table, code, on_parts<Kind::kernel<Op, float>>, on_parts<Kind::kernel<Op, double>>)
#define KERNELS_signed_numbers(Kind, Op) set<Kind, Op>(table, code, SignedNumbers())
#define KERNELS_integers_and_bool(Kind, Op, BoolOp) \
  set<Kind, Op>(table, code, Integers());           \
  set_bool<Kind, BoolOp>(table, code)
#define KERNELS_numbers_and_bool(Kind, Op, BoolOp) \
  set<Kind, Op>(table, code, Numbers());           \
  set_bool<Kind, BoolOp>(table, code)
#define KERNELS_numbers_and_bool_and_parts(Kind, Op, BoolOp) \
  KERNELS_numbers_and_parts(Kind, Op);                       \
  set_bool<Kind, BoolOp>(table, code)
#define KERNELS_products(Op, BoolOp)            \
  KERNELS_numbers_and_bool(Binary, Op, BoolOp); \
  set_complex(table, code, complex_multiply<float>, complex_multiply<double>)
#define KERNELS_comparison(Op) KERNELS_numbers_and_bool(Comparison, Op, Op)
#define KERNELS_sleef(stem, ulp) \
  set_reals(table, code, vector_unary<F32, SLEEF_F32(stem, ulp)>, vector_unary<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_binary(stem, ulp) \
  set_reals(table, code, vector_binary<F32, SLEEF_F32(stem, ulp)>, vector_binary<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_power(stem, ulp, of_two, Op)                                 \
  set_reals(table, code, power<F32, SLEEF_F32(stem, ulp), SLEEF_F32(of_two, ulp)>, \
            power<F64, SLEEF_F64(stem, ulp), SLEEF_F64(of_two, ulp)>);             \
  set<Binary, Op>(table, code, Integers())
#define KERNELS_sleef_logistic(stem, ulp) \
  set_reals(table, code, logistic<F32, SLEEF_F32(stem, ulp)>, logistic<F64, SLEEF_F64(stem, ulp)>)
#define KERNELS_sleef_large(Large, stem, ulp, helper)                                          \
  set_reals(table, code, with_large<F32, Large, SLEEF_F32(stem, ulp), SLEEF_F32(helper, ulp)>, \
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

#undef INLINE

}  // namespace
}  // namespace shardwise
