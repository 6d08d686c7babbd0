// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/narrow_float.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "shardwise/base/float_bits.h"

namespace shardwise {
namespace {

constexpr DType kNarrow[] = {DType::kF4E2M1FN, DType::kF6E2M3FN,      DType::kF6E3M2FN, DType::kF8E3M4,
                             DType::kF8E4M3,   DType::kF8E4M3B11FNUZ, DType::kF8E4M3FN, DType::kF8E4M3FNUZ,
                             DType::kF8E5M2,   DType::kF8E5M2FNUZ,    DType::kF8E8M0FNU};

TEST(NarrowFloat, FiniteValuesHaveTheirBits) {
  for (const DType dtype : kNarrow) {
    const unsigned patterns = 1U << bit_width(dtype);
    unsigned finite = 0;
    for (unsigned pattern = 0; pattern < patterns; ++pattern) {
      const auto bits = static_cast<uint8_t>(pattern);
      const double value = narrow_float_value(dtype, bits);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(narrow_float_bits(dtype, value), bits) << mlir_name(dtype) << " " << pattern;
      ++finite;
    }
    EXPECT_GT(finite, patterns / 2) << mlir_name(dtype);
  }
}

TEST(NarrowFloat, AValueThatUnderflowsKeepsItsSign) {
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FN, 1e-10), 0x00);
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FN, -1e-10), 0x80);
  EXPECT_EQ(narrow_float_bits(DType::kF4E2M1FN, 0.1), 0x0);
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FNUZ, -1e-10), 0x00);  // it has no negative zero
}

TEST(NarrowFloat, ValuesThatTheFormatLacksHaveNone) {
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FN, 500.0), std::nullopt);
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FN, std::numeric_limits<double>::infinity()), std::nullopt);
  EXPECT_EQ(narrow_float_bits(DType::kF8E8M0FNU, -1.0), std::nullopt);
  EXPECT_EQ(narrow_float_bits(DType::kF8E8M0FNU, 0.0), std::nullopt);
  EXPECT_EQ(narrow_float_bits(DType::kF4E2M1FN, 7.0), std::nullopt);  // half a step above 6
  EXPECT_EQ(narrow_float_bits(DType::kF4E2M1FN, std::nan("")), std::nullopt);
}

TEST(NarrowFloat, ValuesNearTheLargestRoundToIt) {
  EXPECT_EQ(narrow_float_bits(DType::kF8E8M0FNU, std::ldexp(1.3, 127)), 0xFE);
  EXPECT_EQ(narrow_float_bits(DType::kF8E8M0FNU, 5.877472e-39), 0);  // 2^-127 as it prints
  EXPECT_EQ(narrow_float_bits(DType::kF8E8M0FNU, 9e-39), 1);
  EXPECT_EQ(narrow_float_bits(DType::kF8E4M3FN, 460.0), 0x7E);
  EXPECT_EQ(narrow_float_bits(DType::kF4E2M1FN, -6.9), 0xF);
}

TEST(FloatBits, NothingIsNearestBeyondTheLargestValue) {
  EXPECT_EQ(nearest_float(DType::kF32, 1e40), std::nullopt);
  EXPECT_EQ(nearest_float(DType::kF16, -1e5), std::nullopt);
  EXPECT_EQ(nearest_float(DType::kBF16, 1.501), 1.5);
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(nearest_float(DType::kF16, infinity), infinity);
}

}  // namespace
}  // namespace shardwise
