// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/padding.h"

#include <algorithm>

namespace shardwise {

Padding result_padding(const LayoutView& layout) {
  return {layout.is_uneven() ? Padding::Kind::kGarbage : Padding::Kind::kNone, {}};
}

Padding moved_padding(const PartitionContext& context) {
  const LayoutView layout = context.result_layout(0);
  const Padding padding = result_padding(layout);
  const Padding& given = context.operand_padding(0);
  // Movement copies padding along with the data, so a known fill stays known.
  if (padding.kind == Padding::Kind::kNone || given.kind != Padding::Kind::kFill) return padding;
  // Rows past the end of a dim that the operand does not have, such as the size-1 dim of a reshape, are copies of data.
  const ShardingRule& rule = context.rule();
  for (size_t d = 0; d < layout.ndim(); ++d) {
    const auto is_missing = [&](FactorId factor) { return !rule.has_factor(0, factor); };
    if (layout.dim(d).uneven() && std::ranges::any_of(rule.dim(rule.result_tensor(0), d), is_missing)) return padding;
  }
  return given;
}

}  // namespace shardwise
