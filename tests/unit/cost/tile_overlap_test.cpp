// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/tile_overlap.h"

#include <algorithm>
#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "shardwise/base/dims.h"

namespace shardwise {
namespace {

using Random = std::mt19937;

int64_t below(Random& random, int64_t count) { return std::uniform_int_distribution<int64_t>(0, count - 1)(random); }

// Device by device, element by element of each dim.
double counted(const ExchangeMap& map) {
  double most = 0;
  Coordinates device(map.axes());
  const int64_t devices = product(device.grid());
  for (int64_t i = 0; i < devices; ++i) {
    device.set_grid(i);
    double needed = 1, held = 1;
    for (size_t d = 0; d < map.to.size(); ++d) {
      const ExchangeTarget& to = map.to[d];
      const ExchangeSource& from = map.from[0][d];
      const int64_t first = device.at(to.axes) * to.step, shard = device.at(from.axes);
      int64_t needs = 0, holds = 0;
      for (int64_t t = std::max(first, from.begin); t < std::min({first + to.rows, to.size, from.end}); ++t) {
        const int64_t source = from.scale * t + from.offset;
        if (source < 0 || source >= from.size) continue;
        ++needs;
        holds += source / from.block == shard ? 1 : 0;
      }
      needed *= static_cast<double>(needs);
      held *= static_cast<double>(holds);
    }
    most = std::max(most, needed - held);
  }
  return most;
}

// Pieces of x=6, y=4, z=3 in random order over the dims of both sides.
std::vector<AxisList> random_axes(Random& random, size_t ndim) {
  AxisList pieces{{0, 1, 6}, {1, 1, 4}, {2, 1, 3}};
  if (below(random, 2) == 0) pieces = {{0, 1, 2}, {0, 2, 3}, {1, 1, 2}, {1, 2, 2}, {2, 1, 3}};
  std::shuffle(pieces.begin(), pieces.end(), random);
  std::vector<AxisList> dims(ndim);
  for (const AxisRef& piece : pieces) {
    const int64_t dim = below(random, static_cast<int64_t>(ndim) + 1);
    if (dim < static_cast<int64_t>(ndim)) dims[static_cast<size_t>(dim)].push_back(piece);
  }
  return dims;
}

ExchangeMap random_map(Random& random) {
  const auto ndim = static_cast<size_t>(1 + below(random, 3));
  const std::vector<AxisList> to = random_axes(random, ndim), from = random_axes(random, ndim);
  ExchangeMap map{.to = {}, .from = {{}}};
  const bool is_shifted = below(random, 2) == 0;
  for (size_t d = 0; d < ndim; ++d) {
    const int64_t size = 1 + below(random, 40), result = is_shifted ? 1 + below(random, 40) : size;
    ExchangeTarget target{.axes = to[d], .rows = ceil_div(result, product(to[d])), .size = result};
    target.step = target.rows;
    ExchangeSource source{.axes = from[d], .block = ceil_div(size, product(from[d])), .size = size};
    if (below(random, 3) == 0) source.block += below(random, 3);
    if (is_shifted) {
      target.rows += below(random, 3);
      source.scale = below(random, 2) == 0 ? 1 : -1;
      source.offset = below(random, 60) - 20;
      source.begin = below(random, 5);
      if (below(random, 2) == 0) source.end = source.begin + below(random, 20);
    }
    map.to.push_back(std::move(target));
    map.from[0].push_back(std::move(source));
  }
  return map;
}

TEST(ElementsReceived, IsWhatCountingGives) {
  Random random(3);
  int found = 0;
  for (int round = 0; round < 4000; ++round) {
    const ExchangeMap map = random_map(random);
    const auto elements = elements_received(map);
    if (!elements) continue;
    ++found;
    ASSERT_EQ(*elements, counted(map)) << round;
  }
  EXPECT_GT(found, 3900);
}

TEST(ElementsReceived, DoesNotDependOnTheSizeOfAxes) {
  const AxisList x{{0, 1, 1 << 20}}, y{{1, 1, 1 << 15}};
  const int64_t size = int64_t{1} << 36;
  // x,y -> y,x on a square: some device holds nothing of its new tile.
  EXPECT_EQ(elements_received(
                {.to = {{y, 1 << 21, 1 << 21, size}, {x, 1 << 16, 1 << 16, size}},
                 .from = {{{.axes = x, .block = 1 << 16, .size = size}, {.axes = y, .block = 1 << 21, .size = size}}}}),
            std::ldexp(1.0, 37));
  // 33·2^20 + 1 rows in blocks of 34, moved by 5.
  EXPECT_EQ(elements_received({.to = {{x, 34, 34, 33 * (1 << 20) + 1}},
                               .from = {{{.axes = x, .block = 34, .size = 33 * (1 << 20) + 1, .offset = 5}}}}),
            5);
}

TEST(ElementsReceived, LeavesStridesAndCutsThatNoSplitHasToCounting) {
  const AxisList half{{0, 1, 2}}, third{{0, 1, 3}};  // of an axis of 6
  EXPECT_EQ(elements_received({.to = {{third, 2, 2, 6}}, .from = {{{.axes = half, .block = 3, .size = 6}}}}),
            std::nullopt);
  EXPECT_EQ(elements_received({.to = {{half, 2, 2, 3}}, .from = {{{.axes = half, .block = 3, .size = 6, .scale = 2}}}}),
            std::nullopt);
}

}  // namespace
}  // namespace shardwise
