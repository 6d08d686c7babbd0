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

// The period of the counts along the dim; none if it is too long.
std::optional<int64_t> period_of(const ExchangeMap& map, size_t d) {
  int64_t period = 1;
  for (const std::vector<ExchangeSource>& from : map.from) {
    if (from[d].holes > kLongestPeriod || std::abs(from[d].scale) > kLongestPeriod) return std::nullopt;
    period = std::lcm(period, from[d].holes * std::abs(from[d].scale));
    if (period > kLongestPeriod) return std::nullopt;
  }
  return period;
}

// Positions around the points where borders pass each other.
class Points {
 public:
  Points(int64_t positions, int64_t period) : positions_(positions), around_(4 * period + 1) {
    add(0);
    add(positions - 1);
  }

  void add(const ExchangeMap& map, size_t d) {
    for (const std::vector<ExchangeSource>& from : map.from) {
      const std::vector<Border> list = borders(map.to[d], from[d]);
      for (size_t a = 0; a < list.size(); ++a) {
        for (size_t b = 0; b < a; ++b) {
          if (const auto point = crossing(list[a], list[b])) add(*point);
        }
      }
    }
  }

  // In order; none if these are all positions.
  std::optional<std::vector<int64_t>> take() {
    std::ranges::sort(found_);
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    if (std::ssize(found_) >= positions_) return std::nullopt;
    return std::move(found_);
  }

 private:
  void add(Wide point) {
    const Wide first = std::max<Wide>(point - around_, 0), last = std::min<Wide>(point + around_, positions_ - 1);
    for (Wide i = first; i <= last; ++i) found_.push_back(static_cast<int64_t>(i));
  }

  int64_t positions_;
  // Borders are rounded to elements, which moves a crossing by as many positions as the borders need to part by one.
  int64_t around_;
  std::vector<int64_t> found_;
};

}  // namespace

std::optional<std::vector<int64_t>> turning_points(const ExchangeMap& map, size_t d) {
  const auto axes = common_axes(map, d);
  const auto period = period_of(map, d);
  if (!axes || !period) return std::nullopt;
  Points points(product(*axes), *period);
  points.add(map, d);
  return points.take();
}

std::optional<TurningPoints> turning_points(std::span<const ExchangeMap> maps) {
  TurningPoints found;
  std::vector<size_t> dims;
  int64_t period = 1;
  for (const ExchangeMap& map : maps) {
    std::optional<size_t> sharded;
    for (size_t d = 0; d < map.to.size(); ++d) {
      const auto axes = common_axes(map, d);
      if (!axes || (!axes->empty() && sharded)) return std::nullopt;
      if (axes->empty()) continue;
      sharded = d;
      if (!found.axes.empty() && found.axes != *axes) return std::nullopt;
      found.axes = *axes;
      const auto own = period_of(map, d);
      if (!own || (period = std::lcm(period, *own)) > kLongestPeriod) return std::nullopt;
    }
    dims.push_back(sharded.value_or(map.to.size()));
  }
  Points points(product(found.axes), period);
  for (size_t i = 0; i < maps.size(); ++i) {
    if (dims[i] < maps[i].to.size()) points.add(maps[i], dims[i]);
  }
  auto positions = points.take();
  if (!positions) return std::nullopt;
  found.positions = std::move(*positions);
  return found;
}

}  // namespace shardwise
