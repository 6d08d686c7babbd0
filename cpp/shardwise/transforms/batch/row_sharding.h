// SPDX-License-Identifier: Apache-2.0
//
// Shardings that put each row on its device (ops/collectives/batch_axes.h). On a mesh x=2, y=4, both manual:
//
//   rows along {x}: tensor<2x8xf32>        [{"x"}, {?}], replicated={"y"}
#pragma once

#include <vector>

#include "shardwise/mesh/sharding.h"
#include "shardwise/ops/collectives/batch_axes.h"

namespace shardwise {

// The sharding of rows whose other dims are given: each device has its own row, and the value is replicated along the
// axes that are not in the set.
TensorSharding row_sharding(const BatchAxes& axes, AxisSet set, std::vector<DimSharding> dims);
// The value with that sharding; the other dims are open. Examples have none.
ValueId constrain_rows(Builder& builder, const BatchAxes& axes, ValueId value, AxisSet set);

}  // namespace shardwise
