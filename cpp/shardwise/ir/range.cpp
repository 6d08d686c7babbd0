// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/range.h"

#include <algorithm>

#include "shardwise/base/dims.h"

namespace shardwise {
namespace {

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

}  // namespace

Interval Range::reads(Interval result, int64_t size) const {
  if (result.begin >= result.end) return {};
  const int64_t ends[] = {scale * result.begin + offset, scale * (result.end - 1) + offset};
  const int64_t first = std::min(ends[0], ends[1]), last = std::max(ends[0], ends[1]) + (window - 1) * dilation;
  const Interval found{std::clamp<int64_t>(-floor_div(-first, holes), 0, size),
                       std::clamp<int64_t>(floor_div(last, holes) + 1, 0, size)};
  return found.begin < found.end ? found : Interval{};
}

bool Range::stays_local(Blocks operand, Blocks result) const {
  // Blocks that start at the same place in each shard need the same local op.
  if (!is_static() || scale * result.block != holes * operand.block) return false;
  const bool inside_block = offset > -holes && last(result.block) < holes * operand.block;
  return inside_block && (result.size == 0 || last(result.size) < holes * operand.size);
}

}  // namespace shardwise
