// SPDX-License-Identifier: Apache-2.0
//
// Requirements of a manual computation, in addition to the types of its region:
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
//       manual_axes={"x"} (%arg2: tensor<4x8xf32>) { … } : (tensor<8x8xf32>) -> tensor<8x8xf32>
//
//   a sharding for each operand and result, all on one mesh that has the manual axes;
//   in each dim, manual axes come first: a device holds a block of 8 / 2 rows, which "y" splits further;
//   the region sees these blocks: %arg2 has 4 rows;
//   no sharding in the region, and no region in it, uses "x" again;
//   it does not capture values.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void verify_manual_computation(const OpView& op);  // ShardingError, or ShapeError for the types of the region
void verify_isolated(const OpView& op);            // ShapeError for a value captured by the op's regions

}  // namespace shardwise
