// SPDX-License-Identifier: Apache-2.0
// Hardware differences between x86 and ARM that kernels must hide: conversions beyond the range of an integer, the bits of
// a NaN, and fused multiplications.
#include "shardwise/tile/isas.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

constexpr DType kFloatTypes[] = {DType::kF16, DType::kBF16, DType::kF32, DType::kF64};

class Isas : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override { use_tile_isa(GetParam()); }
  void TearDown() override { use_tile_isa(tile_isas().back()); }
};

// More than one vector, and a tail.
constexpr int64_t kLanes = 77;

NdArray repeated(DType dtype, std::span<const Scalar> values) {
  const NdArray array = NdArray::empty(dtype, {kLanes});
  for (int64_t i = 0; i < kLanes; ++i) {
    store(values[static_cast<size_t>(i) % values.size()], array.data() + i * item_size(dtype));
  }
  return array;
}

template <class T>
NdArray repeated(DType dtype, const std::vector<T>& bits) {
  const NdArray array = NdArray::empty(dtype, {kLanes});
  for (int64_t i = 0; i < kLanes; ++i) {
    std::memcpy(array.data() + i * static_cast<int64_t>(sizeof(T)), &bits[static_cast<size_t>(i) % bits.size()],
                sizeof(T));
  }
  return array;
}

template <class T>
T item(const NdArray& array, int64_t i) {
  T value;
  std::memcpy(&value, array.data() + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

NdArray run(TileBuilder tiles, const std::vector<NdArray>& inputs) {
  const TileProgram program = std::move(tiles).build();
  const NdArray out = NdArray::empty(program.output_dtype(0), {kLanes});
  run_tiles(program, inputs, std::array{out}, serial_for());
  return out;
}

NdArray run(TileCode code, DType result, const std::vector<NdArray>& inputs) {
  TileBuilder tiles;
  std::vector<uint32_t> registers;
  for (const NdArray& input : inputs) registers.push_back(tiles.input(input.dtype()));
  tiles.output(tiles.emit(code, registers, result));
  return run(std::move(tiles), inputs);
}

// ---- floats beyond the range of an integer ----------------------------------------------------------------------------

// x86 gives the smallest integer for all that does not fit, ARM the nearest one.
Scalar saturated(DType to, double value) {
  if (std::isnan(value)) return Scalar::of_int(to, 0);
  const int bits = bit_width(to) - (is_signed_integer(to) ? 1 : 0);
  const double beyond = std::ldexp(1.0, bits), smallest = is_signed_integer(to) ? -beyond : 0.0;
  const uint64_t largest = std::numeric_limits<uint64_t>::max() >> (64 - bits);
  if (value >= beyond) return Scalar::of_uint(to, largest);
  if (value <= smallest) return Scalar::of_int(to, is_signed_integer(to) ? -static_cast<int64_t>(largest) - 1 : 0);
  return value < 0 ? Scalar::of_int(to, static_cast<int64_t>(value))
                   : Scalar::of_uint(to, static_cast<uint64_t>(value));
}

TEST_P(Isas, FloatsSaturateAsIntegers) {
  for (const DType from : kFloatTypes) {
    for (const DType to :
         {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32, DType::kU64}) {
      std::vector<Scalar> values;
      for (const double value : {0.0, 0.75, 1e6, 1e30, static_cast<double>(INFINITY), static_cast<double>(NAN)}) {
        values.push_back(Scalar::of_float(from, value));
        values.push_back(Scalar::of_float(from, -value));
      }
      for (const int exponent : {7, 8, 15, 16, 31, 32, 63, 64}) {
        const double power = std::ldexp(1.0, exponent);
        for (const double near : {power, std::nextafter(power, 0.0), power - 1, power - 0.5, power + 1}) {
          values.push_back(Scalar::of_float(from, near));
          values.push_back(Scalar::of_float(from, -near));
        }
      }
      for (size_t begin = 0; begin < values.size(); begin += kLanes) {
        const NdArray x = repeated(from, std::span(values).subspan(begin));
        const NdArray got = run(TileCode::kConvert, to, {x});
        for (int64_t i = 0; i < kLanes; ++i) {
          const double value = x.scalar_at(i).real;
          ASSERT_EQ(got.scalar_at(i), saturated(to, value)) << mlir_name(from) << " " << value << " " << mlir_name(to);
        }
      }
    }
  }
}

// ---- the bits of a NaN --------------------------------------------------------------------------------------------------

// Signalling, quiet, and with either sign. An invalid operation gives a negative NaN on x86, and a positive one on ARM.
template <class T>
std::vector<T> nan_bits() {
  constexpr int kMantissa = std::numeric_limits<std::conditional_t<sizeof(T) == 4, float, double>>::digits - 1;
  constexpr T kSign = T{1} << (8 * sizeof(T) - 1), kQuiet = T{1} << (kMantissa - 1);
  constexpr T kInfinity = (kSign - 1) ^ ((T{1} << kMantissa) - 1);
  return {kInfinity | 1, kInfinity | kQuiet, kInfinity | kQuiet | 5, kSign | kInfinity | 3, kSign | kInfinity | kQuiet};
}

template <class T>
void check_nans_that_move(DType dtype) {
  const std::vector<T> nans = nan_bits<T>();
  const NdArray x = repeated(dtype, nans);
  const NdArray truths = repeated<uint8_t>(DType::kBool, {1, 0, 0});
  const NdArray zeros = NdArray::full(dtype, {kLanes}, Scalar::of_float(dtype, 0));
  const NdArray selected = run(TileCode::kSelect, dtype, {truths, x, zeros}), copied = run(TileCode::kCopy, dtype, {x});
  const NdArray negated = run(TileCode::kNegate, dtype, {x}), absolute = run(TileCode::kAbs, dtype, {x});
  const NdArray sign = run(TileCode::kSign, dtype, {x});
  constexpr T kSign = T{1} << (8 * sizeof(T) - 1);
  for (int64_t i = 0; i < kLanes; ++i) {
    const T bits = nans[static_cast<size_t>(i) % nans.size()];
    ASSERT_EQ(item<T>(copied, i), bits);
    ASSERT_EQ(item<T>(selected, i), i % 3 == 0 ? bits : T{0});
    ASSERT_EQ(item<T>(negated, i), bits ^ kSign);
    ASSERT_EQ(item<T>(absolute, i), bits & ~kSign);
    ASSERT_EQ(item<T>(sign, i), bits);
  }
}

TEST_P(Isas, NaNsThatMoveKeepTheirBits) {
  check_nans_that_move<uint32_t>(DType::kF32);
  check_nans_that_move<uint64_t>(DType::kF64);
}

template <class T>
void check_extrema_of_nans(DType dtype, T canonical) {
  const NdArray nans = repeated(dtype, nan_bits<T>());
  const NdArray ones = NdArray::full(dtype, {kLanes}, Scalar::of_float(dtype, 1));
  for (const TileCode code : {TileCode::kMaximum, TileCode::kMinimum}) {
    for (const auto& [a, b] : {std::pair{nans, ones}, std::pair{ones, nans}, std::pair{nans, nans}}) {
      const NdArray got = run(code, dtype, {a, b});
      for (int64_t i = 0; i < kLanes; ++i) ASSERT_EQ(item<T>(got, i), canonical);
    }
  }
  const NdArray clamped = run(TileCode::kClamp, dtype, {ones, nans, ones});
  for (int64_t i = 0; i < kLanes; ++i) ASSERT_EQ(item<T>(clamped, i), canonical);
}

TEST_P(Isas, AnExtremumOfANaNIsTheCanonicalOne) {
  check_extrema_of_nans<uint32_t>(DType::kF32, 0x7FC00000U);
  check_extrema_of_nans<uint64_t>(DType::kF64, 0x7FF8000000000000ULL);
}

TEST_P(Isas, NarrowerNaNsAreQuietAndKeepSignAndUpperPayload) {
  const NdArray x = repeated<uint32_t>(DType::kF32, {0x7F800001U, 0xFF800001U, 0x7FC0A000U, 0xFFABC000U});
  const NdArray half = run(TileCode::kConvert, DType::kF16, {x}), brain = run(TileCode::kConvert, DType::kBF16, {x});
  constexpr std::array<uint16_t, 4> kHalf{0x7E00, 0xFE00, 0x7E05, 0xFF5E}, kBrain{0x7FC0, 0xFFC0, 0x7FC0, 0xFFEB};
  for (int64_t i = 0; i < kLanes; ++i) {
    ASSERT_EQ(item<uint16_t>(half, i), kHalf[static_cast<size_t>(i) % 4]) << i;
    ASSERT_EQ(item<uint16_t>(brain, i), kBrain[static_cast<size_t>(i) % 4]) << i;
  }
}

// ---- products are rounded before they are added --------------------------------------------------------------------------

// (1 + e)^2 = 1 + 2 e + e^2, whose last term a product loses and a fused multiplication keeps.
template <class T>
void check_products_are_rounded(DType dtype, DType complex) {
  const T e = std::numeric_limits<T>::epsilon() * T(8), x = 1 + e, square = 1 + 2 * e;
  ASSERT_NE(std::fma(x, x, -square), T{0});
  const auto full = [&](T value) { return NdArray::full(dtype, {kLanes}, Scalar::of_float(dtype, value)); };
  const NdArray xs = full(x), minus = full(-square);
  TileBuilder tiles;
  const uint32_t a = tiles.input(dtype), c = tiles.input(dtype);
  tiles.output(tiles.emit(TileCode::kAdd, {tiles.emit(TileCode::kMultiply, {a, a}, dtype), c}, dtype));
  const NdArray sum = run(std::move(tiles), {xs, minus});
  // The real part of (x + i) (x + i square) is x x - square.
  const NdArray left = run(TileCode::kComplex, complex, {xs, full(1)});
  const NdArray right = run(TileCode::kComplex, complex, {xs, full(square)});
  const NdArray packed = run(TileCode::kMultiply, complex, {left, right});
  for (int64_t i = 0; i < kLanes; ++i) {
    ASSERT_EQ(item<T>(sum, i), T{0});
    ASSERT_EQ(item<T>(packed, 2 * i), T{0});
  }
}

TEST_P(Isas, ProductsAreRoundedBeforeTheyAreAdded) {
  check_products_are_rounded<float>(DType::kF32, DType::kC64);
  check_products_are_rounded<double>(DType::kF64, DType::kC128);
}

TEST(Portable, ProductsAreRoundedBeforeTheyAreAdded) {
  // (x + i)^2 is x x - 1 + 2 i x.
  const double e = 0x1p-30, x = 1 + e;
  const NdArray base = repeated(DType::kC128, std::array{Scalar::of_complex(DType::kC128, x, 1)});
  const NdArray two = repeated(DType::kC128, std::array{Scalar::of_complex(DType::kC128, 2, 0)});
  EXPECT_EQ(run(TileCode::kPower, DType::kC128, {base, two}).scalar_at(0).real, 2 * e);
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, Isas, testing::ValuesIn(tile_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

}  // namespace
}  // namespace shardwise
