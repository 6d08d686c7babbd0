// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/moved_axes.h"

#include <algorithm>

#include "shardwise/mesh/digits.h"

namespace shardwise {
namespace {

constexpr size_t kMostPlacements = 64;

// The axes of each of `from`, which are sharded, go to one of `to`; several may go to the same one.
void move_all(const ShardingRule& rule, std::span<const FactorId> from, std::span<const FactorId> to,
              std::vector<AxisList>& axes, std::vector<OpPlacement>& found) {
  if (found.size() == kMostPlacements) return;
  if (from.empty()) return found.push_back(placement_by_rule(rule, axes));
  const AxisList moved = std::exchange(axes[from[0]], {});
  for (const FactorId target : to) {
    const AxisList before = axes[target];
    append_merged(axes[target], moved);
    move_all(rule, from.subspan(1), to, axes, found);
    axes[target] = before;
  }
  axes[from[0]] = moved;
}

}  // namespace

void placements_along_other_dims(const ShardingRule& rule, std::span<const FactorId> whole,
                                 std::span<const AxisList> axes, std::vector<OpPlacement>& found) {
  std::vector<FactorId> from, to;
  for (const FactorId factor : whole) {
    if (!axes[factor].empty()) from.push_back(factor);
  }
  if (from.empty()) return;
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = rule.factors()[f];
    // The other dim must be free: its results are independent of each other, and nothing shards it yet.
    if (factor.kind == FactorKind::kPassThrough && factor.size > 1 && axes[f].empty()) {
      to.push_back(static_cast<FactorId>(f));
    }
  }
  std::vector<AxisList> moved(axes.begin(), axes.end());
  move_all(rule, from, to, moved, found);
}

}  // namespace shardwise
