// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/digit_map.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

using Steps = std::vector<std::vector<int64_t>>;

MeshPtr grid(int64_t x, int64_t y) {
  return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", x}, {"y", y}});
}

// From shards along the axes of `from` to tiles along those of `to`, by dim; each dim has a row for each device.
ExchangeMap moved(const Mesh& mesh, const std::vector<AxisList>& from, const std::vector<AxisList>& to) {
  ExchangeMap map{.to = {}, .from = {{}}};
  const int64_t size = mesh.device_count();
  for (size_t d = 0; d < from.size(); ++d) {
    const int64_t rows = size / product(to[d]);
    map.to.push_back({.axes = to[d], .rows = rows, .step = rows, .size = size});
    map.from[0].push_back({.axes = from[d], .block = size / product(from[d]), .size = size});
  }
  return map;
}

Steps steps(const MeshPtr& mesh, const std::vector<AxisList>& from, const std::vector<AxisList>& to) {
  const auto map = digit_map_of(moved(*mesh, from, to));
  return map ? sender_steps(*map, *mesh) : Steps{};
}

TEST(DigitMap, AReplicaTakesTheDigitAtTheFrontOfItsChain) {
  const MeshPtr mesh = grid(2, 2);
  const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
  EXPECT_EQ(steps(mesh, {x}, {y}), (Steps{{0, 2, 1, 3}}));
  EXPECT_EQ(steps(mesh, {x, y}, {y, x}), (Steps{{0, 2, 1, 3}}));
}

TEST(DigitMap, EachGatheredDigitIsAStep) {
  const MeshPtr mesh = grid(3, 2);
  const AxisList x{full_axis(*mesh, 0)};
  EXPECT_EQ(steps(mesh, {x}, {{}}), (Steps{{0, 1, 2, 3, 4, 5}, {2, 3, 4, 5, 0, 1}, {4, 5, 0, 1, 2, 3}}));
}

TEST(DigitMap, AxesAreCutWhereTheOtherSideEnds) {
  const MeshPtr mesh = grid(4, 2);
  const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
  // The receiver (x, y) needs the shards 2y and 2y + 1.
  EXPECT_EQ(steps(mesh, {x}, {y}), (Steps{{0, 4, 2, 6, 1, 5, 3, 7}, {2, 6, 0, 4, 3, 7, 1, 5}}));
}

TEST(DigitMap, SizesThatAgreeTogetherAreOneSlot) {
  const MeshPtr mesh = grid(2, 3);
  const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
  const AxisList xy{x[0], y[0]}, yx{y[0], x[0]};
  EXPECT_EQ(steps(mesh, {xy}, {yx}), (Steps{{0, 2, 4, 1, 3, 5}}));
}

TEST(DigitMap, AxesOfOneDeviceChangeNothing) {
  const MeshPtr mesh = grid(4, 1);
  const AxisList x{full_axis(*mesh, 0)}, yx{full_axis(*mesh, 1), full_axis(*mesh, 0)};
  EXPECT_EQ(steps(mesh, {x}, {yx}), (Steps{{0, 1, 2, 3}}));
}

TEST(DigitMap, OtherMapsHaveNone) {
  const MeshPtr mesh = grid(2, 3);
  const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
  EXPECT_FALSE(digit_map_of(moved(*mesh, {x}, {y})));  // 2 shards, 3 tiles
  ExchangeMap shifted = moved(*mesh, {x}, {x});
  EXPECT_TRUE(digit_map_of(shifted));
  shifted.from[0][0].offset = 1;
  EXPECT_FALSE(digit_map_of(shifted));
  ExchangeMap uneven = moved(*mesh, {x}, {{}});
  uneven.from[0][0].block = 4;
  EXPECT_FALSE(digit_map_of(uneven));
}

}  // namespace
}  // namespace shardwise
