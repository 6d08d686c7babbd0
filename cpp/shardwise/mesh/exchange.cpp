// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shardwise/base/dims.h"
#include "shardwise/base/error.h"
#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

// Offsets and scales may be negative, and C++ divides toward zero.
int64_t ceil_div_signed(int64_t a, int64_t b) { return -floor_div(-a, b); }

// The elements of an operand in the result, as a progression: element u has the result's index to + to_step·u, and the
// operand's index from + from_step·u.
struct Progression {
  int64_t to = 0, to_step = 1, from = 0, from_step = 1;
  bool is_empty = false;
};

// The t for which holes divides scale·t + offset.
Progression progression_of(const ExchangeSource& source) {
  const int64_t common = std::gcd(source.scale, source.holes);
  // 2t + 1 is never a multiple of 4.
  if (source.offset % common != 0) return {.is_empty = true};
  const int64_t scale = source.scale / common, offset = source.offset / common, holes = source.holes / common;
  // Holes 3 and offset -1: result indices 1, 4, 7, … are the elements 0, 1, 2, …
  Progression found{.to = 0, .to_step = holes, .from = 0, .from_step = scale};
  if (holes > 1) {
    // The extended Euclidean algorithm gives the inverse of the scale.
    int64_t rest = ((scale % holes) + holes) % holes, other = holes, factor = 1, other_factor = 0;
    while (rest != 0) {
      const int64_t quotient = other / rest;
      other = std::exchange(rest, other - quotient * rest);
      other_factor = std::exchange(factor, other_factor - quotient * factor);
    }
    const int64_t inverse = ((other_factor % holes) + holes) % holes;
    const int64_t wanted = ((-offset % holes) + holes) % holes;
    // Both factors are below `holes`, but their product may exceed 64 bits.
    found.to = static_cast<int64_t>(static_cast<__int128>(inverse) * wanted % holes);
  }
  found.from = (scale * found.to + offset) / holes;
  return found;
}

// The u of a progression between bounds.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t count() const { return std::max<int64_t>(end - begin, 0); }
};

Span cut(Span span, int64_t first, int64_t step, int64_t low, int64_t high) {
  if (low >= high) return {};
  // The u with low <= first + step·u < high. A negative step swaps the bounds.
  const int64_t begin = step > 0 ? ceil_div_signed(low - first, step) : ceil_div_signed(first - high + 1, -step);
  const int64_t end = step > 0 ? floor_div(high - 1 - first, step) + 1 : floor_div(first - low, -step) + 1;
  return {std::max(span.begin, begin), std::min(span.end, end)};
}

// A quarter of the range, so that the difference of two bounds cannot overflow.
constexpr Span kAll{std::numeric_limits<int64_t>::min() / 4, std::numeric_limits<int64_t>::max() / 4};

// The elements that are in tile i, and at operand indices [low, high).
Span elements_in(const Progression& line, const ExchangeTarget& to, const ExchangeSource& from, int64_t i, int64_t low,
                 int64_t high) {
  if (line.is_empty) return {};
  const int64_t begin = std::max(i * to.step, from.begin);
  const int64_t end = std::min({i * to.step + to.rows, to.size, from.end});
  const Span span = cut(kAll, line.to, line.to_step, begin, end);
  return span.count() == 0 ? Span{} : cut(span, line.from, line.from_step, low, high);
}

}  // namespace

AxisList ExchangeMap::axes() const {
  AxisList all = axes_of_dims(to);
  for (const auto& operand : from) append(all, axes_of_dims(operand));
  return all;
}

ExchangePiece piece_between(const ExchangeTarget& to, const ExchangeSource& from, int64_t i, int64_t j) {
  const Progression line = progression_of(from);
  const int64_t low = j * from.block;
  const Span span = elements_in(line, to, from, i, low, std::min(low + from.block, from.size));
  if (span.count() == 0) return {};
  return {.to = line.to + line.to_step * span.begin - i * to.step,
          .from = line.from + line.from_step * span.begin - low,
          .count = span.count(),
          .to_step = line.to_step,
          .from_step = line.from_step};
}

int64_t rows_needed(const ExchangeTarget& to, const ExchangeSource& from, int64_t i) {
  return elements_in(progression_of(from), to, from, i, 0, from.size).count();
}

int64_t real_rows(const ExchangeTarget& to, int64_t i) {
  return std::clamp<int64_t>(to.size - i * to.step, 0, to.rows);
}

std::pair<int64_t, int64_t> senders(const ExchangeTarget& to, const ExchangeSource& from, int64_t i) {
  const Progression line = progression_of(from);
  const Span span = elements_in(line, to, from, i, 0, from.size);
  if (span.count() == 0) return {0, -1};
  // The operand's indices only grow, or only fall, along the progression, so its two ends are in the outermost shards.
  const int64_t first = (line.from + line.from_step * span.begin) / from.block;
  const int64_t last = (line.from + line.from_step * (span.end - 1)) / from.block;
  return {std::min(first, last), std::max(first, last)};
}

std::pair<int64_t, int64_t> range_from(const ExchangeTarget& to, const ExchangeSource& from) {
  const Progression line = progression_of(from);
  ExchangeTarget whole = to;
  whole.rows = whole.step = to.size;
  const Span span = elements_in(line, whole, from, 0, 0, from.size);
  if (span.count() == 0) return {0, -1};
  return {line.to + line.to_step * span.begin, line.to + line.to_step * (span.end - 1)};
}

Coordinates::Coordinates(AxisSpan used) {
  for (const AxisRef& ref : used) {
    const auto known = std::ranges::find(axes_, ref.axis, &Axis::axis);
    if (known == axes_.end()) {
      axes_.push_back({ref.axis, ref.next(), 0});
    } else {
      // (1)2 and (1)3 of 12 need 6 positions, not 12: the digits after them change no position along `used`.
      known->size = std::lcm(known->size, ref.next());
    }
  }
  std::ranges::sort(axes_, {}, &Axis::axis);
}

AxisList Coordinates::grid() const {
  AxisList grid;
  for (const Axis& axis : axes_) grid.push_back({axis.axis, 1, axis.size});
  return grid;
}

void Coordinates::set_grid(int64_t index) {
  for (size_t i = axes_.size(); i-- > 0;) {
    axes_[i].coordinate = index % axes_[i].size;
    index /= axes_[i].size;
  }
}

size_t Coordinates::find(int32_t axis) const {
  const auto found = std::ranges::find(axes_, axis, &Axis::axis);
  check_internal(found != axes_.end(), "Coordinates: an axis that is used");
  return static_cast<size_t>(found - axes_.begin());
}

int64_t Coordinates::at(AxisSpan axes) const {
  int64_t position = 0;
  for (const AxisRef& ref : axes) {
    const Axis& axis = axes_[find(ref.axis)];
    position = position * ref.size + axis.coordinate / (axis.size / ref.next()) % ref.size;
  }
  return position;
}

void Coordinates::set(AxisSpan axes, int64_t position) {
  for (size_t i = axes.size(); i-- > 0;) {
    Axis& axis = axes_[find(axes[i].axis)];
    const int64_t unit = axis.size / axes[i].next();
    const int64_t digit = axis.coordinate / unit % axes[i].size;
    // Only this digit changes, because other refs of the same axis may be set as well.
    axis.coordinate += (position % axes[i].size - digit) * unit;
    position /= axes[i].size;
  }
}

int64_t received_across_meshes(const ExchangeMap& map, int64_t device) {
  const int64_t other = device_in(*map.to_mesh, *map.from_mesh, device);
  return received_at(
      map, [&](AxisSpan axes) { return shard_index(*map.to_mesh, axes, device); },
      [&](AxisSpan axes) { return shard_index(*map.from_mesh, axes, other); });
}

}  // namespace shardwise
