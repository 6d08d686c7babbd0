// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_def.h"

namespace shardwise {

Dims LocalLayout::local_shape() const {
  Dims shape;
  shape.reserve(dims.size());
  for (const DimLayout& dim : dims) shape.push_back(dim.block);
  return shape;
}

void not_differentiable(VjpContext&) {}

ShardingRule no_rule(const OpView&) { return {}; }

}  // namespace shardwise
