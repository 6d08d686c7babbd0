// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/text.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace somewhere_else {
struct Point {
  int x;
};
std::string to_text(const Point& point) { return "x=" + std::to_string(point.x); }
}  // namespace somewhere_else

namespace shardwise {
namespace {

TEST(Str, JoinsPartsOfAllTypes) {
  EXPECT_EQ(str("dim ", 1, " of ", Dims{7, 2}, " is ", 0.1F, " for ", DType::kF32), "dim 1 of [7, 2] is 0.1 for f32");
  EXPECT_EQ(str(std::string("a"), 'b', true, std::string_view("c"), int8_t{-5}, uint8_t{200}), "abtruec-5200");
  EXPECT_EQ(str(std::numeric_limits<int64_t>::min(), " ", std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(str(somewhere_else::Point{3}, ";", Dims{}), "x=3;[]");
  EXPECT_EQ(str(), "");
}

TEST(Join, SeparatesItems) {
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, "x"), "1x2x3");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
  EXPECT_EQ(join(std::vector<std::string>{"data"}, ", "), "data");
  EXPECT_EQ(join(std::vector<bool>{true, false}, "|"), "true|false");
  EXPECT_EQ(join(Dims{4, 5}, ", ", [](int64_t size) { return str("<", size, ">"); }), "<4>, <5>");
}

TEST(FloatText, IsShortest) {
  EXPECT_EQ(float_text(0.1), "0.1");
  EXPECT_EQ(float_text(0.1F), "0.1");
  EXPECT_EQ(float_text(static_cast<double>(0.1F)), "0.10000000149011612");
  EXPECT_EQ(float_text(-0.0), "-0");
  EXPECT_EQ(float_text(1e30), "1e+30");
  EXPECT_EQ(float_text(-std::numeric_limits<float>::infinity()), "-inf");
  EXPECT_EQ(float_text(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(FloatText, ReadsBackAsTheSameValue) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 20000; ++i) {
    double value = 0;
    const uint64_t bits = random();
    static_assert(sizeof(value) == sizeof(bits));
    std::memcpy(&value, &bits, sizeof(bits));
    if (value != value) continue;
    EXPECT_EQ(std::strtod(float_text(value).c_str(), nullptr), value);
  }
}

}  // namespace
}  // namespace shardwise
