// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/dtype.h"

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

// A 16-bit float format described by numbers, to check the bit tricks against plain arithmetic in double.
struct Format {
  int mantissa_bits;
  int smallest_exponent;  // of normal numbers
  double largest;
  DType dtype;
};
constexpr Format kHalf{10, -14, 65504.0, DType::kF16};
const Format kBrain{7, -126, std::ldexp(255.0, 120), DType::kBF16};

// Round to nearest even by arithmetic: nearbyint of value / (unit in the last place).
double reference_rounding(const Format& format, double value) {
  if (value == 0 || std::isnan(value) || std::isinf(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - format.mantissa_bits);
  const double result = std::nearbyint(value / unit) * unit;
  return std::abs(result) > format.largest ? std::copysign(std::numeric_limits<double>::infinity(), value) : result;
}

template <class T>
double widen(uint16_t bits) {
  T half;
  half.bits = bits;
  return static_cast<double>(static_cast<float>(half));
}

template <class T>
void expect_rounds(const Format& format, float value) {
  const double expected = reference_rounding(format, static_cast<double>(value));
  const double actual = widen<T>(T(value).bits);
  ASSERT_EQ(std::bit_cast<uint64_t>(actual), std::bit_cast<uint64_t>(expected)) << value;
}

// Every 16-bit pattern, the point half-way to its neighbour, and the floats on both sides of each.
template <class T>
void check_all_patterns(const Format& format) {
  for (uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    const double value = widen<T>(bits);
    const auto narrow = static_cast<float>(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(widen<T>(T(narrow).bits))) << pattern;
      ASSERT_EQ(T(narrow).bits & 0x8000U, bits & 0x8000U) << pattern;
      continue;
    }
    ASSERT_EQ(T(narrow).bits, bits);
    if (std::isinf(value)) continue;
    T next;
    next.bits = static_cast<uint16_t>(bits + 1);
    const double above = std::isinf(static_cast<float>(next))
                             ? 2 * format.largest - widen<T>(static_cast<uint16_t>(bits - 1))
                             : widen<T>(next.bits);
    const auto middle = static_cast<float>(value + (std::copysign(std::abs(above), value) - value) / 2);
    for (float start : {narrow, middle}) {
      expect_rounds<T>(format, start);
      expect_rounds<T>(format, std::nextafterf(start, std::numeric_limits<float>::infinity()));
      expect_rounds<T>(format, std::nextafterf(start, -std::numeric_limits<float>::infinity()));
    }
  }
}

TEST(Float16, ConvertsEveryPatternAndItsNeighbours) { check_all_patterns<Float16>(kHalf); }

TEST(BFloat16, ConvertsEveryPatternAndItsNeighbours) { check_all_patterns<BFloat16>(kBrain); }

TEST(Float16, MatchesTheFormatsDefinition) {
  for (uint32_t pattern = 0; pattern < 0x7C00U; ++pattern) {
    const int exponent = static_cast<int>(pattern >> 10);
    const double mantissa = static_cast<double>(pattern & 0x3FFU) / 1024;
    const double expected = exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1 + mantissa, exponent - 15);
    ASSERT_EQ(widen<Float16>(static_cast<uint16_t>(pattern)), expected);
    ASSERT_EQ(widen<Float16>(static_cast<uint16_t>(pattern | 0x8000U)), -expected);
  }
}

TEST(SixteenBitFloats, ConvertRandomFloats) {
  std::mt19937 random(7);
  for (int i = 0; i < 300000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    expect_rounds<Float16>(kHalf, value);
    expect_rounds<BFloat16>(kBrain, value);
  }
}

TEST(SixteenBitFloats, KeepNaNWhosePayloadWouldBeCut) {
  for (uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FC00000U}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(std::isnan(static_cast<float>(Float16(nan))));
    EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(nan))));
  }
}

TEST(Scalar, RoundsADoubleOnce) {
  // 1 + 2^-11 + 2^-40: nearest is above; by way of float it would be the tie 1 + 2^-11, which goes to 1.
  const double value = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(Scalar::of_float(DType::kF16, value).real, 1 + std::ldexp(1.0, -10));
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> mantissa(1.0, 2.0);
  for (int i = 0; i < 100000; ++i) {
    // Close to a tie of either format, off by less than a float can see.
    const int exponent = static_cast<int>(random() % 45) - 28;
    for (const Format& format : {kHalf, kBrain}) {
      const int last = std::max(exponent, format.smallest_exponent) - format.mantissa_bits;
      const double tie = std::ldexp(std::floor(std::ldexp(mantissa(random), exponent - last)) + 0.5, last);
      for (double near : {tie, std::nextafter(tie, 1e9), std::nextafter(tie, -1e9), -tie}) {
        ASSERT_EQ(Scalar::of_float(format.dtype, near).real, reference_rounding(format, near)) << near;
      }
    }
  }
  EXPECT_EQ(Scalar::of_float(DType::kF16, 1e300).real, std::numeric_limits<double>::infinity());
  EXPECT_EQ(Scalar::of_float(DType::kBF16, -1e300).real, -std::numeric_limits<double>::infinity());
}

TEST(Scalar, ComparesBitwise) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Scalar::of_float(DType::kF32, nan), Scalar::of_float(DType::kF32, nan));
  EXPECT_FALSE(Scalar::of_float(DType::kF32, 0.0) == Scalar::of_float(DType::kF32, -0.0));
  EXPECT_FALSE(Scalar::of_int(DType::kI32, 1) == Scalar::of_int(DType::kI64, 1));
}

TEST(Scalar, KeepsAll64Bits) {
  const auto largest = std::numeric_limits<uint64_t>::max();
  const auto smallest = std::numeric_limits<int64_t>::min();
  uint64_t natural = 0;
  store(Scalar::of_uint(DType::kU64, largest), &natural);
  EXPECT_EQ(natural, largest);
  EXPECT_EQ(load(DType::kU64, &natural), Scalar::of_uint(DType::kU64, largest));
  int64_t integer = 0;
  store(Scalar::of_int(DType::kI64, smallest), &integer);
  EXPECT_EQ(integer, smallest);
}

TEST(Scalar, WrapsIntegersToTheirWidth) {
  EXPECT_EQ(Scalar::of_int(DType::kI8, 200).integer, -56);
  EXPECT_EQ(Scalar::of_int(DType::kU8, -1).natural, 255U);
  EXPECT_EQ(Scalar::of_uint(DType::kU32, 1ULL << 32).natural, 0U);
  EXPECT_EQ(Scalar::of_int(DType::kBool, 256).integer, 1);
  EXPECT_EQ(Scalar::of_uint(DType::kBool, 256).integer, 1);
  EXPECT_EQ(Scalar::of_int(DType::kF32, 3).real, 3.0);
  EXPECT_THROW(Scalar::of_float(DType::kI32, 1.0), InternalError);
}

TEST(Scalar, RoundsNarrowFloatsAndWrapsNarrowIntegers) {
  EXPECT_EQ(Scalar::of_float(DType::kF8E4M3FN, 1.06).real, 1.0);
  EXPECT_TRUE(std::isnan(Scalar::of_float(DType::kF8E4M3FN, 500).real));
  EXPECT_EQ(Scalar::of_float(DType::kF4E2M1FN, 500).real, 6.0);
  EXPECT_EQ(Scalar::of_float(DType::kF8E8M0FNU, 3.0).real, 4.0);
  EXPECT_EQ(Scalar::of_int(DType::kI4, 9).integer, -7);
  EXPECT_EQ(Scalar::of_int(DType::kU2, -1).natural, 3U);
  uint8_t byte = 0;
  store(Scalar::of_int(DType::kI4, -1), &byte);
  EXPECT_EQ(byte, 0x0F);  // in the low bits, as in ml_dtypes
  byte = 0xF1;
  EXPECT_EQ(load(DType::kI4, &byte), Scalar::of_int(DType::kI4, 1));
}

TEST(Scalar, HoldsComplexNumbers) {
  const Scalar z = Scalar::of_complex(DType::kC64, 0.1, -0.0);
  EXPECT_EQ(z.real, static_cast<double>(0.1F));
  EXPECT_FALSE(z == Scalar::of_float(DType::kC64, 0.1));  // whose imaginary part is +0
  EXPECT_EQ(Scalar::of_int(DType::kC128, 2), Scalar::of_complex(DType::kC128, 2, 0));
}

TEST(Scalar, StoresAndLoadsEveryDType) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Scalar one = Scalar::of_int(dtype, 1);
    unsigned char memory[16] = {};
    store(one, memory);
    EXPECT_EQ(load(dtype, memory), one) << mlir_name(dtype);
  }
  const uint8_t odd_bool = 2;
  EXPECT_EQ(load(DType::kBool, &odd_bool), Scalar::of_int(DType::kBool, 1));
}

TEST(DType, NamesRoundTrip) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_mlir(mlir_name(dtype)), dtype);
    EXPECT_EQ(dtype_from_numpy(numpy_name(dtype)), dtype);
    if (dtype <= DType::kF64) {
      EXPECT_EQ(dispatch(dtype, []<class T>() { return static_cast<int64_t>(sizeof(T)); }), item_size(dtype));
    }
    EXPECT_LE(is_float(dtype) + is_complex(dtype) + is_signed_integer(dtype) + is_unsigned_integer(dtype), 1);
  }
  EXPECT_EQ(dtype_from_mlir("f33"), std::nullopt);
  EXPECT_EQ(mlir_name(DType::kU16), "ui16");
  EXPECT_EQ(numpy_name(DType::kBool), "bool");
  EXPECT_FALSE(is_integer(DType::kBool));
}

}  // namespace
}  // namespace shardwise
