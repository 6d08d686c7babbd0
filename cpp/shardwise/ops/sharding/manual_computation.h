// SPDX-License-Identifier: Apache-2.0
//
// Shardy's manual_computation, a region that sees local shapes.
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
//       manual_axes={"x"} (%arg2: tensor<4x8xf32>) { … sdy.return %2 : tensor<4x8xf32> } : …
//
// in_shardings and out_shardings are the sharding columns of the region's arguments and of the results, as seen from
// outside. The ops of the region do not see manual axes: for them, %arg2 is sharded [{"y"}, {}].
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> manual_computation_ops();

// Removes the manual axes, which the inside of a region does not see; and adds them back, given the annotation of the
// region.
TensorSharding seen_from_inside(const TensorSharding& outside, const AxisList& manual_axes);
TensorSharding seen_from_outside(const TensorSharding& inside, const TensorSharding& declared,
                                 const AxisList& manual_axes);

}  // namespace shardwise
