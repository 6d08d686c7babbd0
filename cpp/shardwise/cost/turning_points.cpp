// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/turning_points.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace shardwise {
namespace {

using Wide = __int128;  // products of two sizes

constexpr int64_t kLongestPeriod = 64;

// Where a border of a tile, an operand or a shard is in the result, times the scale: begin + slope·i.
struct Border {
  Wide begin = 0, slope = 0;
};

// The axes of all tiles and shards of the dim that are not whole; none if they differ.
std::optional<AxisList> common_axes(const ExchangeMap& map, size_t d) {
  AxisList axes = map.to[d].axes;
  for (const std::vector<ExchangeSource>& from : map.from) {
    if (from[d].axes.empty()) continue;
    if (!axes.empty() && axes != from[d].axes) return std::nullopt;
    axes = from[d].axes;
  }
  return axes;
}

std::vector<Border> borders(const ExchangeTarget& to, const ExchangeSource& from) {
  const Wide scale = std::abs(from.scale), sign = from.scale > 0 ? 1 : -1;
  const Wide step = to.axes.empty() ? 0 : to.step, block = from.axes.empty() ? 0 : from.block;
  // Element e of the operand is at (holes·e - offset) / scale.
  const auto at = [&](Wide element, Wide slope) {
    return Border{sign * (from.holes * element - from.offset), sign * from.holes * slope};
  };
  return {{0, scale * step},
          {scale * to.rows, scale * step},
          {scale * from.begin, 0},
          {scale * std::min(from.end, to.size), 0},
          at(0, 0),
          at(from.size, 0),
          at(0, block),
          at(from.block, block)};
}

// Where one border passes the other, rounded down; none if they are parallel.
std::optional<Wide> crossing(const Border& a, const Border& b) {
  Wide distance = b.begin - a.begin, slope = a.slope - b.slope;
  if (slope == 0) return std::nullopt;
  if (slope < 0) {
    distance = -distance;
    slope = -slope;
  }
  return distance >= 0 ? distance / slope : -((-distance + slope - 1) / slope);
}

}  // namespace

std::optional<std::vector<int64_t>> turning_points(const ExchangeMap& map, size_t d) {
  const auto axes = common_axes(map, d);
  if (!axes) return std::nullopt;
  const int64_t positions = product(*axes);
  int64_t period = 1;
  for (const std::vector<ExchangeSource>& from : map.from) {
    if (from[d].holes > kLongestPeriod || std::abs(from[d].scale) > kLongestPeriod) return std::nullopt;
    period = std::lcm(period, from[d].holes * std::abs(from[d].scale));
    if (period > kLongestPeriod) return std::nullopt;
  }
  // Borders are rounded to elements, which moves a crossing by as many positions as the borders need to part by one.
  const int64_t around = 4 * period + 1;
  std::vector<int64_t> found;
  const auto add = [&](Wide point) {
    const Wide first = std::max<Wide>(point - around, 0), last = std::min<Wide>(point + around, positions - 1);
    for (Wide i = first; i <= last; ++i) found.push_back(static_cast<int64_t>(i));
  };
  add(0);
  add(positions - 1);
  for (const std::vector<ExchangeSource>& from : map.from) {
    const std::vector<Border> list = borders(map.to[d], from[d]);
    for (size_t a = 0; a < list.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (const auto point = crossing(list[a], list[b])) add(*point);
      }
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  if (std::ssize(found) >= positions) return std::nullopt;
  return found;
}

}  // namespace shardwise
