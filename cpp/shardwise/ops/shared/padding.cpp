// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/padding.h"

namespace shardwise {

Padding result_padding(const LocalLayout& layout) {
  for (const DimLayout& dim : layout.dims) {
    if (dim.uneven()) return {Padding::Kind::kGarbage, {}};
  }
  return {};
}

Padding moved_padding(const PartitionContext& context) {
  const Padding padding = result_padding(context.result_layout(0));
  const Padding& given = context.operand_layout(0).padding;
  return padding.kind != Padding::Kind::kNone && given.kind == Padding::Kind::kFill ? given : padding;
}

}  // namespace shardwise
