// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/row_sharding.h"

#include <utility>

#include "shardwise/ops/sharding/constraints.h"

namespace shardwise {

TensorSharding row_sharding(const BatchAxes& axes, AxisSet set, std::vector<DimSharding> dims) {
  TensorSharding sharding;
  sharding.mesh = axes.mesh();
  if (set != 0) dims.insert(dims.begin(), DimSharding{.axes = axes.refs(set), .open = false, .priority = {}});
  sharding.dims = std::move(dims);
  sharding.replicated = sort_and_merge(axes.refs(axes.all() & ~set));
  return sharding;
}

ValueId constrain_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet set) {
  if (axes.mesh() == nullptr) return value;
  const size_t ndim = shape_of_row(builder.module(), value, set).size();
  const DimSharding open{.axes = {}, .open = true, .priority = {}};
  return create_sharding_constraint(builder, value, row_sharding(axes, set, std::vector<DimSharding>(ndim, open)));
}

}  // namespace shardwise
