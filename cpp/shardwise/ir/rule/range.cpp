// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/range.h"

#include <algorithm>

namespace shardwise {
namespace {

// Attributes may be any int64, so products of two need more bits.
using Wide = __int128;

// Rounds to minus infinity, where / rounds to 0: -1 / 2 is -1.
Wide wide_floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

int64_t clamped(Wide index, int64_t size) { return static_cast<int64_t>(std::clamp<Wide>(index, 0, size)); }

}  // namespace

Interval Range::reads(Interval result, int64_t size) const {
  if (result.begin >= result.end) return {};
  const auto index = [&](int64_t of) { return Wide{scale} * of + offset; };
  // A negative scale reads from the end, so the two ends of the result may swap.
  const auto [first, end] = std::minmax({index(result.begin), index(result.end - 1)});
  const Wide last = end + Wide{window - 1} * dilation;
  // pad low=2, interior=1 of 3 rows (offset -2, holes 2): results [0, 4) touch the places -2 … 1, row 0 alone.
  const Interval found{clamped(-wide_floor_div(-first, holes), size), clamped(wide_floor_div(last, holes) + 1, size)};
  return found.begin < found.end ? found : Interval{};
}

bool Range::stays_local(Blocks operand, Blocks result) const {
  // Blocks that start at the same place in each shard need the same local op.
  if (!is_static() || Wide{scale} * result.block != Wide{holes} * operand.block) return false;
  const auto last = [&](int64_t count) { return offset + Wide{scale} * (count - 1) + Wide{window - 1} * dilation; };
  // An offset above -holes begins in the holes before the block's first row, and reads nothing of the shard before.
  const bool inside_block = offset > -holes && last(result.block) < Wide{holes} * operand.block;
  return inside_block && (result.size == 0 || last(result.size) < Wide{holes} * operand.size);
}

}  // namespace shardwise
