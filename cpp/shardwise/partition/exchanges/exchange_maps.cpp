// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/exchange_maps.h"

#include <algorithm>
#include <numeric>

namespace shardwise {
namespace {

// Result indices [begin, end).
struct Span {
  int64_t begin = 0, end = 0;
};

// The result indices t with low <= (scale·t + offset) / holes < high.
Span indices_within(const ExchangeSource& source, int64_t low, int64_t high) {
  const int64_t first = low * source.holes - source.offset, last = (high - 1) * source.holes - source.offset;
  const int64_t scale = std::abs(source.scale);
  // low·holes <= scale·t + offset <= (high - 1)·holes, for t: the lower bound is rounded up, the upper one down.
  if (source.scale > 0) return {-floor_div(-first, scale), floor_div(last, scale) + 1};
  return {-floor_div(last, scale), floor_div(-first, scale) + 1};
}

std::optional<ExchangeSource> composed(const ExchangeSource& outer, const ExchangeTarget& to,
                                       const ExchangeSource& inner) {
  // `outer` must read the tiles that `inner` writes, each element on one device: halos have some on two.
  // It may know fewer rows of these tiles.
  if (to.step != to.rows || outer.axes != to.axes || outer.size > to.size) return std::nullopt;
  // Interior padding (holes 2) of rows 0, 2, 4, … (scale 2) would compose to 2t / 2, which has no holes.
  if (std::gcd(inner.scale, outer.holes) != 1) return std::nullopt;
  ExchangeSource source = outer;
  // Elsewhere `outer` reads the fill of `inner`, so the composed map has nothing there. An empty range stays within that of
  // `outer`, too: it must not overlap with those of other operands.
  const Span known = indices_within(outer, std::max<int64_t>(inner.begin, 0), std::min(inner.end, outer.size));
  source.begin = std::clamp(known.begin, outer.begin, outer.end);
  source.end = std::clamp(known.end, source.begin, outer.end);
  source.axes = inner.axes;
  source.block = inner.block;
  source.size = inner.size;
  source.scale = inner.scale * outer.scale;
  source.offset = inner.scale * outer.offset + inner.offset * outer.holes;
  source.holes = inner.holes * outer.holes;
  return source;
}

// The result indices below `size` that the operand has, as far as `begin` and `end` do not cut them off.
Span known_indices(const ExchangeTarget& to, const ExchangeSource& from) {
  const Span known = indices_within(from, 0, from.size);
  return {std::max<int64_t>(known.begin, 0), std::min(known.end, to.size)};
}

// How many indices of the result are between the first and the last one that the operand has.
int64_t elements_of(const ExchangeTarget& to, const ExchangeSource& from) {
  const Span known = known_indices(to, from);
  return std::max<int64_t>(std::min(known.end, from.end) - std::max(known.begin, from.begin), 0);
}

bool is_cut_off(const ExchangeTarget& to, const ExchangeSource& from) {
  const Span known = known_indices(to, from);
  return known.begin < known.end && (from.begin > known.begin || from.end < known.end);
}

// Adds a dim to the hull and its parts.
bool add_dim(std::span<const ExchangeMap> maps, size_t d, Hull& hull) {
  const ExchangeTarget& to = maps[0].to[d];
  const ExchangeSource& from = maps[0].from[0][d];
  int64_t low = from.offset, high = from.offset;
  for (const ExchangeMap& map : maps) {
    const ExchangeTarget& target = map.to[d];
    const ExchangeSource& source = map.from[0][d];
    const bool same_axes =
        target.axes == to.axes && source.axes == from.axes && source.block == from.block && source.size == from.size;
    // Sharded tiles must be at one distance on all devices. A tile that all devices have may also be read with strides.
    const bool is_shifted =
        to.axes.empty() ? source.scale > 0 && target.rows == target.size : source.scale == 1 && target == to;
    if (!same_axes || !is_shifted || source.holes != 1 || is_cut_off(target, source)) return false;
    low = std::min(low, source.offset);
    high = std::max(high, source.offset + source.scale * (target.rows - 1));
  }
  ExchangeTarget all = to;
  // Offsets -1, 0 and 1 of tiles of 8 rows: rows -1 … 8 of the operand, two more than a tile.
  const int64_t more = high - low + 1 - to.rows;
  all.rows += more;
  all.size += more;
  if (to.axes.empty()) all.step = all.rows;
  hull.map.to.push_back(std::move(all));
  hull.map.from[0].push_back({.axes = from.axes, .block = from.block, .size = from.size, .offset = low});
  for (size_t k = 0; k < maps.size(); ++k) {
    const ExchangeSource& source = maps[k].from[0][d];
    Hull::Part& part = hull.parts[k];
    part.starts.push_back(source.offset - low);
    part.limits.push_back(source.offset - low + source.scale * (maps[k].to[d].rows - 1) + 1);
    part.strides.push_back(source.scale);
  }
  return true;
}

}  // namespace

std::optional<std::vector<ComposedRead>> composed_reads(const ExchangeMap& outer, size_t k, const ExchangeMap& inner) {
  if (outer.is_across_meshes() || inner.is_across_meshes()) return std::nullopt;
  std::vector<ComposedRead> reads;
  for (size_t i = 0; i < inner.from.size(); ++i) {
    ComposedRead read{.operand = i, .from = {}};
    bool has_any = true;
    for (size_t d = 0; d < outer.to.size(); ++d) {
      const auto source = composed(outer.from[k][d], inner.to[d], inner.from[i][d]);
      if (!source) return std::nullopt;
      has_any = has_any && elements_of(outer.to[d], *source) > 0;
      read.from.push_back(*source);
    }
    const bool is_last = i + 1 == inner.from.size();
    if (has_any || (is_last && reads.empty())) reads.push_back(std::move(read));
  }
  return reads;
}

bool needs_no_fill(const ExchangeMap& map) {
  int64_t all = 1, known = 0;
  for (const ExchangeTarget& to : map.to) all *= to.size;
  // No element is of two operands.
  for (const std::vector<ExchangeSource>& from : map.from) {
    int64_t own = 1;
    for (size_t d = 0; d < map.to.size(); ++d) own *= from[d].holes == 1 ? elements_of(map.to[d], from[d]) : 0;
    known += own;
  }
  return known == all;
}

std::optional<Hull> hull_of(std::span<const ExchangeMap> maps) {
  Hull hull{.map = {.to = {}, .from = {{}}}, .parts = std::vector<Hull::Part>(maps.size())};
  for (const ExchangeMap& map : maps) {
    if (map.from.size() != 1 || map.is_across_meshes()) return std::nullopt;
    for (const ExchangeTarget& to : map.to) {
      // An empty tile has no last row.
      if (to.rows == 0) return std::nullopt;
    }
  }
  for (size_t d = 0; d < maps[0].to.size(); ++d) {
    if (!add_dim(maps, d, hull)) return std::nullopt;
  }
  return hull;
}

}  // namespace shardwise
