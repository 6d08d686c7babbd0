// SPDX-License-Identifier: Apache-2.0
#include "shardwise/tile/lines.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

constexpr int64_t kSizes[] = {0, 1, 7, 15, 16, 17, 63, 64, 65, 127, 255, 256, 257, 1000};

class Lines : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { use_tile_isa(GetParam()); }
  void TearDown() override { use_tile_isa(tile_isas().back()); }
};

template <class T>
std::vector<T> random_items(int64_t count, uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> items;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    if constexpr (std::is_floating_point_v<T>) {
      constexpr T kSpecial[] = {T(0), T(-0.0), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity()};
      items.push_back(bits % 9 == 0 ? kSpecial[bits / 9 % 4] : static_cast<T>(static_cast<int64_t>(bits)) * T(1e-18));
    } else {
      items.push_back(static_cast<T>(bits));
    }
  }
  return items;
}

// The item with the order of max, and of min with `sign` -1: NaN first, then by value, +0 over -0.
template <class T>
bool is_better(T a, T b, bool max) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a == b) return max ? !std::signbit(a) : std::signbit(a);
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a);
  }
  return max ? a > b : a < b;
}

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

// What a total of max or min is for an item.
template <class T>
auto total_of(T item, bool max) {
  if constexpr (std::is_floating_point_v<T>) {
    using Key = KeyOf<T>;
    if (std::isnan(item)) return max ? std::numeric_limits<Key>::max() : std::numeric_limits<Key>::min();
    Key bits;
    std::memcpy(&bits, &item, sizeof bits);
    return static_cast<Key>(bits < 0 ? bits ^ std::numeric_limits<Key>::max() : bits);
  } else {
    return item;
  }
}

template <class T>
void expect_extrema(int column) {
  for (const bool max : {true, false}) {
    const int fold = max ? kFoldMax : kFoldMin;
    for (const int64_t size : kSizes) {
      auto items = random_items<T>(size + 1, static_cast<uint32_t>(size));
      if constexpr (std::is_floating_point_v<T>) {
        if (size == 65) items[40] = std::numeric_limits<T>::quiet_NaN();
      }
      T best = items[0];
      for (int64_t i = 1; i <= size; ++i) {
        if (is_better(items[static_cast<size_t>(i)], best, max)) best = items[static_cast<size_t>(i)];
      }
      auto total = total_of(items[0], max);
      line_kernels().fold_line[fold][column](&total, items.data() + 1, size);
      EXPECT_EQ(total, total_of(best, max)) << size << " items of column " << column;
    }
  }
}

TEST_P(Lines, ExtremaOfALineAreThoseOfALoop) {
  expect_extrema<int8_t>(1);
  expect_extrema<int16_t>(2);
  expect_extrema<int32_t>(3);
  expect_extrema<int64_t>(4);
  expect_extrema<uint8_t>(5);
  expect_extrema<uint16_t>(6);
  expect_extrema<uint32_t>(7);
  expect_extrema<uint64_t>(8);
  expect_extrema<float>(11);
  expect_extrema<double>(12);
}

template <class T>
T combined(int fold, T a, T b) {
  if (fold == kFoldSum) return static_cast<T>(a + b);
  if constexpr (std::is_integral_v<T>) {
    if (fold == kFoldProduct) return static_cast<T>(uint64_t{a} * b);
    return static_cast<T>(fold == kFoldAnd ? a & b : a | b);
  } else {
    return a * b;
  }
}

// Rows are combined in order: sums of floats have the bits of a loop.
template <class T>
void expect_folds(int column) {
  for (int fold = kFoldSum; fold <= (std::is_integral_v<T> ? kFoldOr : kFoldProduct); ++fold) {
    for (const int64_t width : kSizes) {
      constexpr int64_t kCount = 5;
      const int64_t stride = width + 3;
      const auto items = random_items<T>(kCount * stride + 1, static_cast<uint32_t>(width));
      auto totals = random_items<T>(width, 1);
      auto expected = totals;
      for (int64_t i = 0; i < kCount * width; ++i) {
        T& total = expected[static_cast<size_t>(i % width)];
        total = combined(fold, total, items[static_cast<size_t>(1 + i / width * stride + i % width)]);
      }
      line_kernels().fold_rows[fold][column](totals.data(), items.data() + 1, stride * int64_t{sizeof(T)}, kCount,
                                             width);
      EXPECT_EQ(std::memcmp(totals.data(), expected.data(), expected.size() * sizeof(T)), 0)
          << "fold " << fold << ", " << width << " items of column " << column;
      if (line_kernels().fold_line[fold][column] == nullptr) continue;
      T total = items[0], all = items[0];
      for (int64_t i = 0; i < width; ++i) all = combined(fold, all, items[static_cast<size_t>(1 + i)]);
      line_kernels().fold_line[fold][column](&total, items.data() + 1, width);
      EXPECT_EQ(total, all) << "fold " << fold << ", " << width << " items of column " << column;
    }
  }
}

TEST_P(Lines, FoldsCombineRowsInOrder) {
  expect_folds<uint8_t>(5);
  expect_folds<uint16_t>(6);
  expect_folds<uint32_t>(7);
  expect_folds<uint64_t>(8);
  expect_folds<float>(11);
  expect_folds<double>(12);
}

TEST_P(Lines, FloatSumsHaveNoFoldOfALineBecauseTheirOrderMatters) {
  EXPECT_EQ(line_kernels().fold_line[kFoldSum][11], nullptr);
  EXPECT_EQ(line_kernels().fold_line[kFoldProduct][12], nullptr);
}

template <class T>
void expect_found(int column) {
  for (const int64_t size : kSizes) {
    for (const int64_t place : {int64_t{0}, size / 2, size - 1, size}) {
      if (place < 0) continue;
      std::vector<T> items(static_cast<size_t>(size + 1), T{3});
      for (int64_t i = place; i < size; i += 2) items[static_cast<size_t>(i)] = T{5};
      const T wanted{5};
      EXPECT_EQ(line_kernels().find_equal[column](items.data(), size, &wanted), place) << size;
    }
  }
}

TEST_P(Lines, TheFirstEqualItemIsFound) {
  expect_found<int8_t>(1);
  expect_found<uint16_t>(6);
  expect_found<int32_t>(3);
  expect_found<uint64_t>(8);
  expect_found<float>(11);
  expect_found<double>(12);
}

TEST_P(Lines, ZerosOfEitherSignAreEqualAndNaNIsNot) {
  const std::vector<float> items{std::nanf(""), 1, -0.0f};
  const float zero = 0, nan = std::nanf("");
  EXPECT_EQ(line_kernels().find_equal[11](items.data(), 3, &zero), 2);
  EXPECT_EQ(line_kernels().find_equal[11](items.data(), 3, &nan), 3);
}

// A tile program of one instruction on two arrays.
template <class T>
std::vector<T> hypot_of(DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  TileBuilder tiles;
  const uint32_t x = tiles.input(dtype), y = tiles.input(dtype);
  tiles.output(tiles.emit(TileCode::kHypot, {x, y}, dtype));
  const TileProgram program = std::move(tiles).build();
  std::vector<T> result(a.size());
  const void* inputs[] = {a.data(), b.data()};
  void* output = result.data();
  TileRunner(program).run(inputs, {&output, 1}, static_cast<int64_t>(a.size()));
  return result;
}

template <class T>
void expect_hypot(DType dtype) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> mantissa(-2, 2);
  const int range = sizeof(T) == 4 ? 126 : 1020;
  std::uniform_int_distribution<int> exponent(-range - 20, range), near(-60, 60);
  std::vector<T> a, b;
  for (int i = 0; i < 4000; ++i) {
    const int e = exponent(random);
    a.push_back(static_cast<T>(std::ldexp(mantissa(random), e)));
    b.push_back(static_cast<T>(std::ldexp(mantissa(random), std::min(e + near(random), range))));
  }
  constexpr T kInf = std::numeric_limits<T>::infinity(), kNaN = std::numeric_limits<T>::quiet_NaN();
  for (const T x : {T(0), T(-0.0), T(1), kInf, -kInf, kNaN, std::numeric_limits<T>::denorm_min()}) {
    for (const T y : {T(0), T(3), -kInf, kNaN, std::numeric_limits<T>::max()}) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const std::vector<T> found = hypot_of(dtype, a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const auto exact = static_cast<T>(std::hypot(static_cast<long double>(a[i]), static_cast<long double>(b[i])));
    if (std::isnan(exact) || std::isinf(exact)) {
      EXPECT_TRUE(std::isnan(exact) ? std::isnan(found[i]) : found[i] == exact) << a[i] << " " << b[i];
      continue;
    }
    EXPECT_LE(std::abs(found[i] - exact), std::nextafter(exact, kInf) - exact) << a[i] << " " << b[i];
  }
}

TEST_P(Lines, HypotIsWithinOneUlpAndDoesNotOverflow) {
  expect_hypot<float>(DType::kF32);
  expect_hypot<double>(DType::kF64);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Lines, testing::ValuesIn(tile_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace shardwise
