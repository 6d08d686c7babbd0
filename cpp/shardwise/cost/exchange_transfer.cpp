// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/exchange_transfer.h"

#include <algorithm>

#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

// The distance from a tile to its first or last sender only grows or only falls from tile to tile, except where the tiles
// reach the first or the last index of the operand.
bool is_from_neighbors(const ExchangeTarget& to, const ExchangeSource& from) {
  const auto [first_index, last_index] = range_from(to, from);
  if (first_index > last_index) return true;
  const int64_t step = std::max<int64_t>(to.step, 1), last_tile = product(to.axes) - 1;
  // Before the first tile comes the last one, where all tiles move the same way: not where they are reversed.
  bool comes_round = false, from_before = false, from_after = false;
  for (const int64_t near :
       {(first_index - to.rows) / step, first_index / step, (last_index - to.rows) / step, last_index / step}) {
    for (int64_t tile = std::max<int64_t>(near - 1, 0); tile <= std::min(near + 1, last_tile); ++tile) {
      const auto [first, last] = senders(to, from, tile);
      if (first > last) continue;
      int64_t lowest = first - tile, highest = last - tile;  // places away
      if (last_tile > 1 && tile == 0 && first == last_tile) lowest = highest = -1, comes_round = true;
      if (last_tile > 1 && tile == last_tile && last == 0) lowest = highest = 1, comes_round = true;
      if (lowest < -1 || highest > 1) return false;
      from_before = from_before || lowest < 0;
      from_after = from_after || highest > 0;
    }
  }
  return !comes_round || !(from_before && from_after);
}

// Whether each device has the rows of its tile, and no others.
bool tile_stays(const ExchangeTarget& to, const ExchangeSource& from) {
  return from.axes == to.axes && from.block == to.rows && to.step == to.rows && from.size == to.size &&
         from.scale == 1 && from.offset == 0 && from.holes == 1 && from.begin <= 0 && from.end >= to.size;
}

bool moves(const ExchangeMap& map, size_t dim) {
  return std::ranges::any_of(map.from, [&](const auto& operand) { return !tile_stays(map.to[dim], operand[dim]); });
}

// The digits of one axis that any of `refs` has.
AxisList digits_of_axis(AxisSpan refs) {
  AxisList axes;
  if (const auto digits = Digits::covering(refs)) {
    for (size_t i = 0; i < digits->size(); ++i) axes.push_back((*digits)[i]);
  } else {
    axes = Coordinates(refs).grid();  // no single split has (1)2 and (1)3: the positions of both
  }
  return sort_and_merge(axes);
}

}  // namespace

TransferKind transfer_of(const ExchangeMap& map) {
  if (map.is_across_meshes()) return TransferKind::kPermute;
  TransferKind kind = TransferKind::kShift;
  for (const std::vector<ExchangeSource>& operand : map.from) {
    for (size_t d = 0; d < map.to.size(); ++d) {
      if (operand[d].axes != map.to[d].axes) return TransferKind::kExchange;
      if (!is_from_neighbors(map.to[d], operand[d])) kind = TransferKind::kPermute;
    }
  }
  return kind;
}

AxisList moving_axes(const ExchangeMap& map) {
  if (map.is_across_meshes()) return all_axes(*map.to_mesh);
  AxisList used;
  for (size_t d = 0; d < map.to.size(); ++d) {
    if (!moves(map, d)) continue;
    append(used, map.to[d].axes);
    for (const auto& operand : map.from) append(used, operand[d].axes);
  }
  erase_if(used, [](const AxisRef& ref) { return ref.size == 1; });
  std::ranges::sort(used);
  AxisList axes;
  for (size_t begin = 0, end = 0; begin < used.size(); begin = end) {
    while (end < used.size() && used[end].axis == used[begin].axis) ++end;
    append(axes, digits_of_axis(AxisSpan(used).subspan(begin, end - begin)));
  }
  return axes;
}

}  // namespace shardwise
