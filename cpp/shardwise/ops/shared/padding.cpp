// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/padding.h"

namespace shardwise {

Padding result_padding(const LocalLayout& layout) {
  return {layout.uneven() ? Padding::Kind::kGarbage : Padding::Kind::kNone, {}};
}

Padding moved_padding(const PartitionContext& context) {
  const Padding padding = result_padding(context.result_layout(0));
  const Padding& given = context.operand_padding(0);
  return padding.kind != Padding::Kind::kNone && given.kind == Padding::Kind::kFill ? given : padding;
}

}  // namespace shardwise
