// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/moved_axes.h"

#include <algorithm>

namespace shardwise {

void placements_along_other_dims(const ShardingRule& rule, std::span<const FactorId> whole,
                                 std::span<const AxisList> axes, std::vector<OpPlacement>& found) {
  for (const FactorId moved : whole) {
    for (size_t f = 0; f < axes.size(); ++f) {
      const Factor& factor = rule.factors()[f];
      // The other dim must be free: its results are independent of each other, and nothing shards it yet.
      if (factor.kind != FactorKind::kPassThrough || factor.size < 2 || !axes[f].empty()) continue;
      std::vector<AxisList> exchanged(axes.begin(), axes.end());
      std::swap(exchanged[f], exchanged[moved]);
      // The axes of one dim can go to one other dim only; a second sharded dim would still be in the way.
      const bool is_done = std::ranges::all_of(whole, [&](FactorId other) { return exchanged[other].empty(); });
      if (is_done) found.push_back(placement_by_rule(rule, exchanged));
    }
  }
}

}  // namespace shardwise
