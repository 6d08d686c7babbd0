// SPDX-License-Identifier: Apache-2.0
//
// Cuts what runs before the peak into segments, so that what is computed again for one of them does not need another one
// computed again, too:
//
//   layer 1  layer 2 | layer 3  layer 4 |  peak  | backward 4, 3, 2, 1         2 segments
//
// Behind the peak a segment is then computed again as a whole, and gone before the next one. What crosses a border is kept,
// or not needed. A border is where the fewest bytes cross, near to where the segments would have equally many saved bytes:
// between two layers, only what one gives to the next.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_set>

#include "shardwise/analysis/live_ranges.h"

namespace shardwise {

struct SegmentedSteps {
  std::span<const LiveStep> steps;            // those before the peak
  std::function<int64_t(ValueId)> bytes;      // of a value of its own memory; 0 of others
  std::function<ValueId(ValueId)> memory_of;  // the value whose memory one lies in, or itself
  std::function<bool(ValueId)> is_saved;      // whether it is read behind the peak
};

// The values that cross the borders of so many segments.
std::unordered_set<ValueId> values_across_borders(const SegmentedSteps& before, int64_t segments);

}  // namespace shardwise
