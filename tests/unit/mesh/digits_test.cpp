// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/digits.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

TEST(Digits, CutsAxesWhereTheProgramDoes) {
  const Mesh mesh("mesh", {{"x", 8}, {"one", 1}, {"y", 2}});
  const AxisRef x = full_axis(mesh, 0);
  const AxisRef x_major{0, 1, 2};
  const AxisRef y = full_axis(mesh, 2);
  const Digits digits(mesh, AxisList{x_major, x});
  ASSERT_EQ(digits.size(), 3U);
  EXPECT_EQ(digits[1], (AxisRef{0, 2, 4}));
  EXPECT_EQ(digits.touched(AxisList{x}), 0b011U);
  EXPECT_EQ(digits.covered(AxisList{x_major}), 0b001U);
  EXPECT_EQ(digits.touched(AxisList{y, full_axis(mesh, 1)}), 0b100U);
  EXPECT_EQ(digits.axes(0b101), (AxisList{x_major, y}));
  EXPECT_EQ(digits.count(digits.all()), 16);
}

TEST(Digits, CutsThatNoSplitHasLeaveTheAxisWhole) {
  const Mesh mesh("mesh", {{"x", 6}});
  const AxisRef half{0, 1, 2};
  const AxisRef third{0, 1, 3};
  const Digits digits(mesh, AxisList{half, third});
  ASSERT_EQ(digits.size(), 1U);
  EXPECT_EQ(digits.touched(AxisList{half}), 1U);
  EXPECT_EQ(digits.covered(AxisList{half}), 0U);
}

TEST(Digits, AxesOfSizeOneHaveNone) {
  std::vector<MeshAxis> axes;
  for (int i = 0; i < 62; ++i) axes.push_back({"a" + std::to_string(i), 1});
  axes.push_back({"x", 2});
  EXPECT_EQ(Digits(Mesh("mesh", axes), {}).size(), 1U);
}

TEST(Digits, OfSomeAxesAlone) {
  const AxisRef x_major{0, 1, 2}, x_rest{0, 2, 4}, x_last{0, 4, 2}, one{2, 1, 1};
  const std::optional<Digits> digits = Digits::covering(AxisList{one, x_last, x_rest});
  ASSERT_TRUE(digits.has_value());
  ASSERT_EQ(digits->size(), 3U);
  EXPECT_EQ((*digits)[0], (AxisRef{0, 2, 2}));
  EXPECT_EQ(digits->encode(AxisList{one, x_rest}), (DigitList{2, 0, 1}));
  EXPECT_EQ(digits->decode({2, 0, 1}), (AxisList{one, x_rest}));
  EXPECT_EQ(digits->count(DigitList{0, 1}), 4);
  EXPECT_FALSE(Digits::covering(AxisList{x_major, {0, 1, 3}}).has_value());
  // The gap between two used parts of an axis is no digit.
  EXPECT_EQ(Digits::covering(AxisList{x_major, x_last})->size(), 2U);
}

TEST(Digits, PartsOfAnAxisThatStaysWholeCoverItTogether) {
  const Mesh mesh("mesh", {{"x", 6}});
  const AxisRef major{0, 1, 3}, minor{0, 3, 2};
  const Digits digits(mesh, AxisList{major, minor, {0, 1, 2}});  // cuts that no single split has
  ASSERT_EQ(digits.size(), 1U);
  EXPECT_EQ(digits.covered(AxisList{major}), DigitSet{0});
  EXPECT_EQ(digits.covered(AxisList{minor, major}), digits.all());
}

TEST(Digits, AreCutFurtherWhereThatIsASplit) {
  std::optional<Digits> digits = Digits::covering(AxisList{{0, 1, 12}});
  digits->cut_inside(0, 5);
  digits->cut_inside(0, 1);
  digits->cut_inside(1, 2);
  EXPECT_EQ(digits->size(), 1U);
  digits->cut_inside(0, 3);
  ASSERT_EQ(digits->size(), 2U);
  EXPECT_EQ((*digits)[0], (AxisRef{0, 1, 3}));
  EXPECT_EQ((*digits)[1], (AxisRef{0, 3, 4}));
  EXPECT_EQ(digits->decode(digits->encode(AxisList{{0, 1, 12}})), (AxisList{{0, 1, 12}}));
}

TEST(Digits, CutAtKeepsTheOrderOfTheList) {
  const AxisRef x{0, 1, 8}, y{1, 1, 2}, one{2, 1, 1};
  EXPECT_EQ(cut_at(AxisList{y, one, x}, AxisList{{0, 2, 2}}), (AxisList{y, {0, 1, 2}, {0, 2, 2}, {0, 4, 2}}));
  EXPECT_EQ(cut_at(AxisList{{0, 1, 6}}, AxisList{{0, 1, 2}, {0, 1, 3}}), std::nullopt);
}

TEST(DividingPrefix, MaySplitTheAxisWhereItEnds) {
  const AxisRef x{0, 1, 4}, y{1, 1, 6}, one{2, 1, 1};
  EXPECT_EQ(dividing_prefix(AxisList{x, y}, 24), (AxisList{x, y}));
  EXPECT_EQ(dividing_prefix(AxisList{x, y}, 12), (AxisList{x, {1, 1, 3}}));
  EXPECT_EQ(dividing_prefix(AxisList{one, y, x}, 3), (AxisList{one, {1, 1, 3}}));
  EXPECT_EQ(dividing_prefix(AxisList{x, y}, 6), (AxisList{{0, 1, 2}}));
  EXPECT_EQ(dividing_prefix(AxisList{y}, 35), AxisList{});
}

}  // namespace
}  // namespace shardwise
