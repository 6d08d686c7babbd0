// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/digits.h"

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

}  // namespace
}  // namespace shardwise
