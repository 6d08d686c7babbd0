// SPDX-License-Identifier: Apache-2.0
//
// What must hold of a manual computation, beside the types that its region has:
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
//       manual_axes={"x"} (%arg2: tensor<4x8xf32>) { … } : (tensor<8x8xf32>) -> tensor<8x8xf32>
//
//   a sharding for each operand and result, all on one mesh that has the manual axes;
//   in each dim manual axes come first: a device holds a block of 8 / 2 rows, which "y" splits further;
//   the region sees those blocks: %arg2 has 4 rows;
//   no sharding in the region, and no region in it, uses "x" again;
//   it uses no values from around it.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void verify_manual_computation(const OpView& op);  // ShardingError, or ShapeError for the types of the region
void verify_isolated(const OpView& op);            // ShapeError for a value from around the op's regions

}  // namespace shardwise
