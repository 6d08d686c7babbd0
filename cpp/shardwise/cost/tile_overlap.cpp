// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/tile_overlap.h"

#include <algorithm>

#include "shardwise/base/small_vector.h"
#include "shardwise/cost/independent_dims.h"
#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

constexpr size_t kMostFreeDigits = 12;    // 4,096 corners
constexpr int64_t kMostBorderTiles = 16;  // that need less than the others, on either side
constexpr size_t kMostCombinations = 4'096;

struct Interval {
  int64_t low = 0, high = 0;  // both are inside
  bool is_empty() const { return low > high; }
  int64_t count() const { return std::max<int64_t>(high - low + 1, 0); }
};

struct DigitRange {
  Digit digit = 0;
  int64_t low = 0, high = 0;  // both are inside
};
using Box = SmallVector<DigitRange, 4>;

// Tiles of one dim that need the same number of elements, as positions along the digits of the target.
struct Cell {
  double needed = 0;
  Box box;
};

struct Coefficient {
  Digit digit = 0;
  int64_t value = 0;  // by which a start grows from one position of the digit to the next
};
using Coefficients = SmallVector<Coefficient, 4>;

// One dim in indices of the operand: tile i begins at base + direction·step·i, shard j at block·j.
struct Line {
  int64_t base = 0, direction = 1, step = 0, rows = 0, block = 0;
  int64_t low = 0, high = 0;  // the elements that anybody needs: [low, high)
  int64_t tiles = 1;
  Coefficients target = {}, source = {};
  std::vector<Cell> cells = {};

  double needed(int64_t tile) const {
    const int64_t begin = base + direction * step * tile;
    return static_cast<double>(std::max<int64_t>(std::min(begin + rows, high) - std::max(begin, low), 0));
  }
  double held(int64_t tile_begin, int64_t shard_begin) const {
    const int64_t begin = std::max({tile_begin, shard_begin, low});
    const int64_t end = std::min({tile_begin + rows, shard_begin + block, high});
    return static_cast<double>(std::max<int64_t>(end - begin, 0));
  }
  // The tiles that begin in [first, last].
  Interval beginning_in(int64_t first, int64_t last) const {
    // All tiles begin at `base`, and the divisions by `step` below have no meaning.
    if (step == 0) return base >= first && base <= last ? Interval{0, tiles - 1} : Interval{0, -1};
    Interval found{-floor_div(base - first, step), floor_div(last - base, step)};
    if (direction < 0) found = {-floor_div(last - base, step), floor_div(base - first, step)};
    return {std::max<int64_t>(found.low, 0), std::min(found.high, tiles - 1)};
  }
};

void append_boxes(const Digits& digits, std::span<const Coefficient> major_first, Interval tiles, Box& front,
                  std::vector<Box>& boxes) {
  int64_t count = 1;
  for (const Coefficient& digit : major_first) count *= digits[digit.digit].size;
  // Tiles 3 … 9 of digits 4·4 are the boxes [0]·[3], [1]·[0, 3] and [2]·[0, 1]: a part of a major digit at either end,
  // and whole ones between them.
  const size_t length = front.size();
  if (tiles.low == 0 && tiles.high == count - 1) {
    for (const Coefficient& digit : major_first) front.push_back({digit.digit, 0, digits[digit.digit].size - 1});
    boxes.push_back(front);
    front.resize(length);
    return;
  }
  const Digit digit = major_first.front().digit;
  const int64_t minor = count / digits[digit].size;
  const auto descend = [&](int64_t low, int64_t high, Interval rest) {
    front.push_back({digit, low, high});
    append_boxes(digits, major_first.subspan(1), rest, front, boxes);
    front.resize(length);
  };
  int64_t first = tiles.low / minor, last = tiles.high / minor;
  if (first == last) return descend(first, first, {tiles.low % minor, tiles.high % minor});
  if (tiles.low % minor != 0) {
    descend(first, first, {tiles.low % minor, minor - 1});
    ++first;
  }
  if (tiles.high % minor != minor - 1) {
    descend(last, last, {0, tiles.high % minor});
    --last;
  }
  if (first <= last) descend(first, last, {0, minor - 1});
}

void add_cells(const Digits& digits, Interval tiles, double needed, Line& line) {
  if (tiles.is_empty() || needed == 0) return;
  std::vector<Box> boxes;
  Box front;
  append_boxes(digits, line.target, tiles, front, boxes);
  for (Box& box : boxes) line.cells.push_back({needed, std::move(box)});
}

// False if too many tiles at the borders differ.
bool find_cells(const Digits& digits, Line& line) {
  const int64_t range = line.high - line.low;
  if (range <= 0 || line.rows <= 0) return true;
  // A tile needs something if it begins after low - rows and before high, and the most if it is inside the range or the
  // range is inside it.
  const Interval some = line.beginning_in(line.low - line.rows + 1, line.high - 1);
  const Interval most =
      line.beginning_in(std::min(line.low, line.high - line.rows), std::max(line.low, line.high - line.rows));
  add_cells(digits, most, static_cast<double>(std::min(line.rows, range)), line);
  const Interval before{some.low, most.is_empty() ? some.high : most.low - 1};
  const Interval after{most.is_empty() ? some.high + 1 : most.high + 1, some.high};
  for (const Interval& border : {before, after}) {
    if (border.count() > kMostBorderTiles) return false;
    for (int64_t tile = border.low; tile <= border.high; ++tile) {
      add_cells(digits, {tile, tile}, line.needed(tile), line);
    }
  }
  return true;
}

Coefficients coefficients(const Digits& digits, const AxisList& axes, int64_t step) {
  Coefficients list;
  const DigitList order = digits.encode(axes);
  // From the minor digit on: a digit moves the start by `step` times the positions of all digits after it.
  for (size_t i = order.size(); i-- > 0;) {
    list.push_back({order[i], step});
    step *= digits[order[i]].size;
  }
  std::ranges::reverse(list);
  return list;
}

bool is_in_place(const ExchangeMap& map) {
  return map.from.size() == 1 && std::ranges::all_of(map.from[0], [](const ExchangeSource& from) {
           return from.holes == 1 && (from.scale == 1 || from.scale == -1);
         });
}

Line line_of(const Digits& digits, const ExchangeTarget& to, const ExchangeSource& from) {
  const int64_t end = std::min(from.end, to.size);
  Line line{.direction = from.scale, .step = to.step, .rows = to.rows, .block = from.block, .tiles = product(to.axes)};
  if (from.scale > 0) {
    line.base = from.offset;
    line.low = std::max<int64_t>(from.begin + from.offset, 0);
    line.high = std::min(end + from.offset, from.size);
  } else {
    // In reverse, the last row of a tile has its lowest index in the operand. `base` is that of tile 0.
    line.base = from.offset - to.rows + 1;
    line.low = std::max<int64_t>(from.offset - end + 1, 0);
    line.high = std::min(from.offset - from.begin + 1, from.size);
  }
  line.target = coefficients(digits, to.axes, from.scale * to.step);
  line.source = coefficients(digits, from.axes, from.block);
  return line;
}

// The elements that a device needs, and those of them that it holds, in some of the dims. A share dominates another if
// it needs more and holds less.
struct DigitShare {
  double needed = 1, held = 1;
  bool dominates(const DigitShare& other) const { return needed >= other.needed && held <= other.held; }
};
using DigitShares = SmallVector<DigitShare, 4>;

void add_digit_share(DigitShares& shares, const DigitShare& share) {
  // Only needed - held counts in the end, and both are multiplied by those of other groups: a dominated share cannot
  // win.
  if (std::ranges::any_of(shares, [&](const DigitShare& known) { return known.dominates(share); })) return;
  erase_if(shares, [&](const DigitShare& known) { return share.dominates(known); });
  shares.push_back(share);
}

// Dims whose digits depend on each other.
class Group {
 public:
  void add(const Line& line, DigitSet digits) {
    lines_.push_back(&line);
    digits_ |= digits;
  }

  // Returns none for too much work. No shares: no device needs anything.
  std::optional<DigitShares> shares(const Digits& digits) const {
    size_t combinations = 1;
    for (const Line* line : lines_) {
      combinations *= line->cells.size();
      if (combinations > kMostCombinations) return std::nullopt;
    }
    DigitShares found;
    for (size_t number = 0; number < combinations; ++number) {
      Box ranges;
      for (size_t i = 0; i < digits.size(); ++i) {
        // Digits of other groups change nothing here, so they stay at 0.
        ranges.push_back({static_cast<Digit>(i), 0, digits_ >> i & 1 ? digits[i].size - 1 : 0});
      }
      DigitShare share;
      size_t rest = number;
      for (const Line* line : lines_) {
        const Cell& cell = line->cells[rest % line->cells.size()];
        rest /= line->cells.size();
        share.needed *= cell.needed;
        for (const DigitRange& range : cell.box) ranges[range.digit] = range;
      }
      share.held = 0;
      // held is 0 so far, the best case: if even that is dominated, the corners need not be visited.
      if (std::ranges::any_of(found, [&](const DigitShare& known) { return known.dominates(share); })) continue;
      if (!find_least_held(ranges, share.held)) return std::nullopt;
      add_digit_share(found, share);
    }
    return found;
  }

 private:
  bool find_least_held(const Box& ranges, double& least) const {
    Box free;
    for (const DigitRange& range : ranges) {
      if (range.low < range.high) free.push_back(range);
    }
    if (free.size() > kMostFreeDigits) return false;
    using Numbers = SmallVector<int64_t, 8>;
    Numbers tiles, shards;  // where they begin, by line
    // By how much the other end of a free digit moves them.
    Numbers tile_moves(free.size() * lines_.size(), 0), shard_moves = tile_moves;
    for (size_t d = 0; d < lines_.size(); ++d) {
      const auto start = [&](const Coefficients& list, int64_t at, Numbers& moves) {
        for (const Coefficient& each : list) {
          at += each.value * ranges[each.digit].low;
          const auto found = std::ranges::find(free, each.digit, &DigitRange::digit);
          if (found == free.end()) continue;
          const auto place = static_cast<size_t>(found - free.begin()) * lines_.size() + d;
          moves[place] += each.value * (found->high - found->low);
        }
        return at;
      };
      tiles.push_back(start(lines_[d]->target, lines_[d]->base, tile_moves));
      shards.push_back(start(lines_[d]->source, 0, shard_moves));
    }
    // Gray code: one digit changes from one corner to the next.
    SmallVector<bool, 16> is_high(free.size(), false);
    for (size_t corner = 1;; ++corner) {
      double held = 1;
      for (size_t d = 0; d < lines_.size(); ++d) held *= lines_[d]->held(tiles[d], shards[d]);
      least = corner == 1 ? held : std::min(least, held);
      if (least == 0 || corner >> free.size() != 0) return true;
      size_t turned = 0;
      // Corner numbers 1, 2, 3, 4, … turn the digits 0, 1, 0, 2, …
      while ((corner >> turned & 1) == 0) ++turned;
      const int64_t sign = is_high[turned] ? -1 : 1;
      is_high[turned] = !is_high[turned];
      for (size_t d = 0; d < lines_.size(); ++d) {
        tiles[d] += sign * tile_moves[turned * lines_.size() + d];
        shards[d] += sign * shard_moves[turned * lines_.size() + d];
      }
    }
  }

  SmallVector<const Line*, 4> lines_;
  DigitSet digits_ = 0;
};

std::vector<Group> groups_of_lines(const Digits& digits, const ExchangeMap& map, const std::vector<Line>& lines) {
  std::vector<DigitSet> touched;  // by dim
  for (size_t d = 0; d < lines.size(); ++d) {
    touched.push_back(digits.touched(map.to[d].axes) | digits.touched(map.from[0][d].axes));
  }
  std::vector<Group> groups;
  for (const std::vector<size_t>&dims :
       independent_dims(lines.size(), [&](size_t a, size_t b) { return (touched[a] & touched[b]) != 0; })) {
    Group group;
    for (const size_t d : dims) group.add(lines[d], touched[d]);
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

std::optional<double> elements_received(const ExchangeMap& map) {
  if (!is_in_place(map)) return std::nullopt;
  const auto digits = Digits::covering(map.axes());
  if (!digits || digits->size() > Digits::kMost) return std::nullopt;
  std::vector<Line> lines;
  for (size_t d = 0; d < map.to.size(); ++d) {
    lines.push_back(line_of(*digits, map.to[d], map.from[0][d]));
    if (!find_cells(*digits, lines.back())) return std::nullopt;
  }
  DigitShares all{DigitShare{}};
  for (const Group& group : groups_of_lines(*digits, map, lines)) {
    const auto more = group.shares(*digits);
    if (!more) return std::nullopt;
    DigitShares combined;
    for (const DigitShare& some : all) {
      for (const DigitShare& others : *more)
        add_digit_share(combined, {some.needed * others.needed, some.held * others.held});
    }
    all = std::move(combined);
  }
  double most = 0;
  for (const DigitShare& share : all) most = std::max(most, share.needed - share.held);
  return most;
}

}  // namespace shardwise
