// SPDX-License-Identifier: Apache-2.0
//
// The loops of fourier.h (Stockham's form of Cooley and Tukey, 1965; a long line as a matrix: Bailey, 1990). Included
// by simd.h; the same restrictions hold.
#pragma once

#include "shardwise/tile/fourier.h"
#include "shardwise/tile/simd_lines.h"

namespace shardwise {
namespace {

#define INLINE inline __attribute__((always_inline))

template <class T>
constexpr int64_t kFourierItems = kFourierBytes / static_cast<int64_t>(sizeof(T));

template <class T>
struct Pair {  // lanes of one element, which fill a register each
  RegisterOf<T> re, im;

  static constexpr int64_t kItems = 2 * kFourierItems<T>;
  static INLINE Pair at(const T* data, int64_t element, int64_t lane) {
    const T* from = data + element * kItems + lane;
    return {read<RegisterOf<T>>(from), read<RegisterOf<T>>(from + kFourierItems<T>)};
  }
  INLINE void put(T* data, int64_t element, int64_t lane) const {
    memcpy(data + element * kItems + lane, &re, sizeof re);
    memcpy(data + element * kItems + kFourierItems<T> + lane, &im, sizeof im);
  }
};

// Calls body(first lane) for each register of an element.
template <class T, class Body>
INLINE void for_each_register(Body body) {
  for (int64_t lane = 0; lane < kFourierItems<T>; lane += kRegisterItems<T>) body(lane);
}

template <class T>
INLINE Pair<T> plus(const Pair<T>& a, const Pair<T>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
INLINE Pair<T> minus(const Pair<T>& a, const Pair<T>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
INLINE Pair<T> turned(const Pair<T>& a) {  // -i a
  return {a.im, -a.re};
}
template <class T>
INLINE Pair<T> times(const Pair<T>& a, const T* root) {
  return {a.re * root[0] - a.im * root[1], a.re * root[1] + a.im * root[0]};
}

// Element k of part j of column q is from[k + s (q + j m)]; of the result, to[k + s (p q + j)].
template <class T>
struct Stage {
  const T* from;
  T* to;
  int64_t m, s;

  INLINE Pair<T> in(int64_t k, int64_t q, int64_t j, int64_t lane) const {
    return Pair<T>::at(from, k + s * (q + j * m), lane);
  }
  INLINE void out(int64_t p, int64_t k, int64_t q, int64_t j, int64_t lane, const Pair<T>& value,
                  const T* roots) const {
    if (m > 1 && j > 0) return times(value, roots + 2 * (j - 1)).put(to, k + s * (p * q + j), lane);
    value.put(to, k + s * (p * q + j), lane);
  }
};

// Stages are passed by value: a compiler that sees an address reads the members again after each store of a T.
template <class T>
void stage_of_two(Stage<T> stage, const T* roots) {
  for (int64_t q = 0; q < stage.m; ++q, roots += 2) {
    for (int64_t k = 0; k < stage.s; ++k) {
      for_each_register<T>([&](int64_t lane) __attribute__((always_inline)) {
        const Pair<T> a = stage.in(k, q, 0, lane), b = stage.in(k, q, 1, lane);
        stage.out(2, k, q, 0, lane, plus(a, b), roots);
        stage.out(2, k, q, 1, lane, minus(a, b), roots);
      });
    }
  }
}

template <class T>
void stage_of_four(Stage<T> stage, const T* roots) {
  for (int64_t q = 0; q < stage.m; ++q, roots += 6) {
    for (int64_t k = 0; k < stage.s; ++k) {
      for_each_register<T>([&](int64_t lane) __attribute__((always_inline)) {
        const Pair<T> a = stage.in(k, q, 0, lane), b = stage.in(k, q, 1, lane);
        const Pair<T> c = stage.in(k, q, 2, lane), d = stage.in(k, q, 3, lane);
        const Pair<T> even = plus(a, c), rest = minus(a, c), odd = plus(b, d), turn = turned(minus(b, d));
        stage.out(4, k, q, 0, lane, plus(even, odd), roots);
        stage.out(4, k, q, 1, lane, plus(rest, turn), roots);
        stage.out(4, k, q, 2, lane, minus(even, odd), roots);
        stage.out(4, k, q, 3, lane, minus(rest, turn), roots);
      });
    }
  }
}

template <class T>
struct Turns {
  T cosines[kLargestFourierFactor], sines[kLargestFourierFactor];
};

// Parts j and p - j share their sums: sum cos (a_j + a_{p-j}) and -i sum sin (a_j - a_{p-j}).
template <class T>
INLINE void odd_element(const Stage<T>& stage, int64_t p, const Turns<T>& turns, const T* roots, int64_t k, int64_t q,
                        int64_t lane) {
  constexpr int64_t kMost = kLargestFourierFactor / 2 + 1;
  Pair<T> sums[kMost], differences[kMost];
  const int64_t half = p / 2;
  const Pair<T> first = stage.in(k, q, 0, lane);
  Pair<T> total = first;
  for (int64_t j = 1; j <= half; ++j) {
    const Pair<T> a = stage.in(k, q, j, lane), b = stage.in(k, q, p - j, lane);
    sums[j] = plus(a, b);
    differences[j] = minus(a, b);
    total = plus(total, sums[j]);
  }
  stage.out(p, k, q, 0, lane, total, roots);
  for (int64_t row = 1; row <= half; ++row) {
    Pair<T> even = first, odd{};
    for (int64_t j = 1, at = row; j <= half; ++j, at = at + row < p ? at + row : at + row - p) {
      const T cosine = turns.cosines[at], sine = turns.sines[at];
      even = {even.re + cosine * sums[j].re, even.im + cosine * sums[j].im};
      odd = {odd.re + sine * differences[j].re, odd.im + sine * differences[j].im};
    }
    stage.out(p, k, q, row, lane, plus(even, turned(odd)), roots);
    stage.out(p, k, q, p - row, lane, minus(even, turned(odd)), roots);
  }
}

template <class T>
INLINE void odd_columns(const Stage<T>& stage, int64_t p, const T* numbers, const T* roots) {
  Turns<T> turns;
  for (int64_t j = 0; j < p; ++j) {
    turns.cosines[j] = numbers[2 * j];
    turns.sines[j] = -numbers[2 * j + 1];
  }
  for (int64_t q = 0; q < stage.m; ++q, roots += 2 * (p - 1)) {
    for (int64_t k = 0; k < stage.s; ++k) {
      for_each_register<T>([&](int64_t lane)
                               __attribute__((always_inline)) { odd_element(stage, p, turns, roots, k, q, lane); });
    }
  }
}

// The loops over the parts of a small factor are unrolled, so that the parts stay in registers.
template <class T>
void stage_of_odd(Stage<T> stage, int64_t p, const T* turns, const T* roots) {
  switch (p) {
    case 3: return odd_columns(stage, 3, turns, roots);
    case 5: return odd_columns(stage, 5, turns, roots);
    case 7: return odd_columns(stage, 7, turns, roots);
    default: return odd_columns(stage, p, turns, roots);
  }
}

// Returns where the result is: `x` or `y`.
template <class T>
T* run_stages(const FourierStages& plan, T* x, T* y) {
  const T* roots = static_cast<const T*>(plan.roots);
  int64_t rest = plan.n, s = 1;
  for (int64_t i = 0; i < plan.count; ++i) {
    const int64_t p = plan.factors[i], m = rest / p;
    const Stage<T> stage{x, y, m, s};
    if (p == 2) {
      stage_of_two(stage, roots);
    } else if (p == 4) {
      stage_of_four(stage, roots);
    } else {
      stage_of_odd(stage, p, roots, roots + 2 * p);
      roots += 2 * p;
    }
    if (m > 1) roots += 2 * m * (p - 1);
    T* const other = x;
    x = y;
    y = other;
    rest = m;
    s *= p;
  }
  return x;
}

template <class T>
void fourier_stages(const FourierStages& plan, void* data, void* scratch) {
  const T* const result = run_stages(plan, static_cast<T*>(data), static_cast<T*>(scratch));
  if (result != data) memcpy(data, result, static_cast<size_t>(plan.n * Pair<T>::kItems) * sizeof(T));
}

// The item of two registers a and b at place(i).
template <class T, class Place>
INLINE RegisterOf<T> picked(RegisterOf<T> a, RegisterOf<T> b, Place place) {
  RegisterOf<SignedOf<T>> places{};
  for (int i = 0; i < static_cast<int>(kRegisterItems<T>); ++i) places[i] = place(i);
  return __builtin_shuffle(a, b, places);
}

// A vector of adjacent complex numbers, of which `available` may be read; the others are 0. An inverse transform
// exchanges the parts.
template <class T>
INLINE void load_numbers(const T* from, int64_t available, bool inverse, T* element) {
  constexpr int64_t kItems = kFourierItems<T>, kRegister = kRegisterItems<T>;
  T padded[2 * kItems];
  if (available < kItems) {
    for (int64_t l = 0; l < 2 * kItems; ++l) padded[l] = T{};
    memcpy(padded, from, static_cast<size_t>(2 * available) * sizeof(T));
    from = padded;
  }
  T *const re = element + (inverse ? kItems : 0), *const im = element + (inverse ? 0 : kItems);
  for (int64_t l = 0; l < kItems; l += kRegister) {
    const RegisterOf<T> a = read<RegisterOf<T>>(from + 2 * l), b = read<RegisterOf<T>>(from + 2 * l + kRegister);
    const RegisterOf<T> even = picked<T>(a, b, [](int i) { return 2 * i; });
    const RegisterOf<T> odd = picked<T>(a, b, [](int i) { return 2 * i + 1; });
    memcpy(re + l, &even, sizeof even);
    memcpy(im + l, &odd, sizeof odd);
  }
}

template <class T>
INLINE void store_numbers(const T* element, int64_t count, bool inverse, T scale, T* to) {
  constexpr int64_t kItems = kFourierItems<T>, kRegister = kRegisterItems<T>;
  constexpr int kHalf = static_cast<int>(kRegister) / 2, kWhole = static_cast<int>(kRegister);
  const T *const re = element + (inverse ? kItems : 0), *const im = element + (inverse ? 0 : kItems);
  T part[2 * kItems];
  T* const target = count < kItems ? part : to;
  for (int64_t l = 0; l < kItems; l += kRegister) {
    const RegisterOf<T> a = read<RegisterOf<T>>(re + l) * scale, b = read<RegisterOf<T>>(im + l) * scale;
    const RegisterOf<T> low = picked<T>(a, b, [](int i) { return i / 2 + i % 2 * kWhole; });
    const RegisterOf<T> high = picked<T>(a, b, [](int i) { return kHalf + i / 2 + i % 2 * kWhole; });
    memcpy(target + 2 * l, &low, sizeof low);
    memcpy(target + 2 * l + kRegister, &high, sizeof high);
  }
  if (count < kItems) memcpy(to, part, static_cast<size_t>(2 * count) * sizeof(T));
}

// Exchanges the parts of a block of registers off the diagonal, of blocks of 2 kDistance rows and columns.
template <class T, int kDistance = 1>
INLINE void transpose_registers(RegisterOf<T>* rows) {
  if constexpr (kDistance < kRegisterItems<T>) {
    constexpr int kItems = static_cast<int>(kRegisterItems<T>);
    RegisterOf<SignedOf<T>> upper, lower;
    for (int k = 0; k < kItems; ++k) {
      upper[k] = (k & kDistance) != 0 ? kItems + k - kDistance : k;
      lower[k] = (k & kDistance) != 0 ? kItems + k : k + kDistance;
    }
    for (int i = 0; i < kItems; ++i) {
      if ((i & kDistance) != 0) continue;
      const RegisterOf<T> a = rows[i], b = rows[i + kDistance];
      rows[i] = __builtin_shuffle(a, b, upper);
      rows[i + kDistance] = __builtin_shuffle(a, b, lower);
    }
    transpose_registers<T, 2 * kDistance>(rows);
  }
}

// kFourierItems elements as the lanes of as many elements.
template <class T>
INLINE void transpose_block(const T* from, T* to) {
  constexpr int64_t kItems = kFourierItems<T>, kElement = Pair<T>::kItems, kRegister = kRegisterItems<T>;
  for (int64_t t = 0; t < kElement; t += kRegister) {
    for (int64_t l = 0; l < kItems; l += kRegister) {
      RegisterOf<T> rows[kRegister];
      for (int64_t i = 0; i < kRegister; ++i) rows[i] = read<RegisterOf<T>>(from + (l + i) * kElement + t);
      transpose_registers<T>(rows);
      T* const first = to + t % kItems * kElement + t / kItems * kItems + l;
      for (int64_t i = 0; i < kRegister; ++i) memcpy(first + i * kElement, &rows[i], sizeof rows[i]);
    }
  }
}

// The matrix has whole vectors. Lanes that are no column, or no row, have any numbers, which no other lane sees.
template <class T>
void fourier_line(const FourierLine& plan, const void* from, void* to, bool inverse, double factor, void* workspace) {
  constexpr int64_t kItems = kFourierItems<T>, kElement = Pair<T>::kItems;
  const int64_t n1 = plan.columns.n, n2 = plan.rows.n, longer = n1 > n2 ? n1 : n2;
  const T* source = static_cast<const T*>(from);
  const T* turns = static_cast<const T*>(plan.turns);
  T* const matrix = static_cast<T*>(workspace);
  T* const x = matrix + (n2 + kItems - 1) / kItems * n1 * kElement;
  T* const y = x + (longer + kItems) * kElement;
  T* written = matrix;
  for (int64_t column = 0; column < n2; column += kItems) {
    for (int64_t row = 0; row < n1; ++row) {
      const int64_t first = row * n2 + column;
      load_numbers(source + 2 * first, n1 * n2 - first, inverse, x + row * kElement);
    }
    const T* const spectrum = run_stages<T>(plan.columns, x, y);
    for (int64_t row = 0; row < n1; ++row, written += kElement, turns += kElement) {
      for_each_register<T>([&](int64_t lane) __attribute__((always_inline)) {
        const Pair<T> a = Pair<T>::at(spectrum, row, lane), w = Pair<T>::at(turns, 0, lane);
        Pair<T>{a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re}.put(written, 0, lane);
      });
    }
  }
  const T scale = static_cast<T>(factor);
  for (int64_t row = 0; row < n1; row += kItems) {
    for (int64_t column = 0; column < n2; column += kItems) {
      transpose_block(matrix + (column / kItems * n1 + row) * kElement, x + column * kElement);
    }
    const T* const spectrum = run_stages<T>(plan.rows, x, y);
    for (int64_t k = 0; k < n2; ++k) {
      store_numbers(spectrum + k * kElement, n1 - row, inverse, scale, static_cast<T*>(to) + 2 * (k * n1 + row));
    }
  }
}

template <class T>
constexpr FourierTable make_fourier() {
  return {fourier_stages<T>, fourier_line<T>};
}

#undef INLINE

}  // namespace
}  // namespace shardwise
