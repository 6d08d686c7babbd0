// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/turning_points.h"

#include <random>

#include <gtest/gtest.h>

#include "shardwise/cost/exchange_cost.h"

namespace shardwise {
namespace {

using Random64 = std::mt19937_64;

int64_t between(Random64& random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random);
}

int64_t ceil_of(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Several operands with disjoint ranges of the result, some whole on all devices, with strides, in reverse or with
// holes.
std::vector<ExchangeMap> random_dims(Random64& random, const AxisList& x, size_t operands) {
  ExchangeTarget to{.axes = between(random, 0, 5) == 0 ? AxisList{} : x, .size = between(random, 1, 9'000)};
  to.step = ceil_of(to.size, product(to.axes)) + (between(random, 0, 3) == 0 ? 1 : 0);
  to.rows = to.step + (between(random, 0, 2) == 0 ? between(random, 0, 4) : 0);
  ExchangeMap map{.to = {to}, .from = {}};
  int64_t begin = 0;
  for (size_t k = 0; k < operands; ++k) {
    constexpr int64_t kScales[] = {1, 1, 1, -1, 2, 3, -2};
    ExchangeSource from{.axes = between(random, 0, 4) == 0 ? AxisList{} : x, .size = between(random, 1, 9'000)};
    from.block = ceil_of(from.size, product(from.axes));
    from.scale = kScales[between(random, 0, 6)];
    from.holes = between(random, 0, 3) == 0 ? between(random, 2, 4) : 1;
    from.offset = from.scale < 0 ? between(random, 0, 2 * from.size) : between(random, -from.size, 200);
    from.begin = begin;
    begin = from.end = k + 1 == operands ? to.size : between(random, begin, to.size);
    map.from.push_back({from});
  }
  return {map};
}

double counted(const ExchangeMap& map, const AxisList& grid) {
  double most = 0;
  Coordinates device(grid);
  for (int64_t i = 0; i < product(device.grid()); ++i) {
    device.set_grid(i);
    most = std::max(most, elements_at(map, device));
  }
  return most;
}

TEST(TurningPoints, HaveTheDeviceThatReceivesMost) {
  Random64 random(3);
  int64_t used = 0;
  for (int round = 0; round < 400; ++round) {
    const AxisList x{{0, 1, between(random, 900, 3'000)}};
    const ExchangeMap map = random_dims(random, x, static_cast<size_t>(between(random, 1, 3)))[0];
    used += turning_points(map, 0).has_value() ? 1 : 0;
    const ExchangeCost cost = exchange_cost(map);
    ASSERT_TRUE(cost.exact) << round;
    ASSERT_EQ(cost.elements, counted(map, x)) << round;
  }
  EXPECT_GT(used, 200);
}

TEST(TurningPoints, OfEachDimAreEnoughForTwo) {
  Random64 random(4);
  for (int round = 0; round < 40; ++round) {
    const AxisList x{{0, 1, between(random, 600, 900)}}, y{{1, 1, 5}};
    const size_t operands = static_cast<size_t>(between(random, 1, 2));
    ExchangeMap map = random_dims(random, x, operands)[0];
    const ExchangeMap columns = random_dims(random, y, operands)[0];
    map.to.push_back(columns.to[0]);
    for (size_t k = 0; k < operands; ++k) map.from[k].push_back(columns.from[k][0]);
    AxisList both = x;
    both.push_back(y[0]);
    ASSERT_EQ(exchange_cost(map).elements, counted(map, both)) << round;
  }
}

TEST(TurningPoints, OfSeveralExchangesHaveTheDeviceThatReceivesMostOfAll) {
  Random64 random(5);
  int64_t used = 0;
  for (int round = 0; round < 100; ++round) {
    const AxisList x{{0, 1, between(random, 1'500, 3'000)}};
    std::vector<ExchangeMap> maps;
    for (int i = 0; i < 2; ++i) {
      maps.push_back(random_dims(random, x, static_cast<size_t>(between(random, 1, 2)))[0]);
      maps.back().to.push_back({.axes = {}, .rows = 3, .step = 3, .size = 3});
      for (auto& from : maps.back().from) from.push_back({.axes = {}, .block = 3, .size = 3});
    }
    used += turning_points(maps).has_value() ? 1 : 0;
    double most = 0;
    Coordinates device(x);
    for (int64_t i = 0; i < product(x); ++i) {
      device.set_grid(i);
      most = std::max(most, elements_at(maps[0], device) + elements_at(maps[1], device));
    }
    ASSERT_EQ(most_elements(maps), most) << round;
  }
  EXPECT_GT(used, 30);
}

// 3 rows of each of 2^20 devices, and 5: the tiles of 8 begin at 8·i, in the first operand up to device 393,216.
TEST(TurningPoints, AreAsManyForAMillionDevices) {
  const auto points = [](int64_t devices) {
    const AxisList x{{0, 1, devices}};
    ExchangeMap map{
        .to = {{x, 8, 8, 8 * devices}},
        .from = {{{.axes = x, .block = 3, .size = 3 * devices, .end = 3 * devices}},
                 {{.axes = x, .block = 5, .size = 5 * devices, .offset = -3 * devices, .begin = 3 * devices}}}};
    EXPECT_TRUE(exchange_cost(map).exact);
    EXPECT_EQ(exchange_cost(map).elements, 8);
    return turning_points(map, 0)->size();
  };
  EXPECT_LT(points(1 << 20), 400u);
  EXPECT_LE(points(1 << 20), points(1 << 12));
}

}  // namespace
}  // namespace shardwise
