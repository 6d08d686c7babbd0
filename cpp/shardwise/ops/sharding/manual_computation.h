// SPDX-License-Identifier: Apache-2.0
//
// Shardy's regions: manual_computation, which sees local shapes, and named_computation.
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
//       manual_axes={"x"} (%arg2: tensor<4x8xf32>) { … sdy.return %2 : tensor<4x8xf32> } : …
//
// in_shardings and out_shardings are the sharding columns of the region's arguments and of the results, as seen from
// outside. The ops of the region do not see manual axes: for them, %arg2 is sharded [{"y"}, {}].
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> manual_computation_ops();

// Removes the manual axes, which the inside of a region does not see; and adds them back, given the annotation of the
// region.
TensorSharding seen_from_inside(const TensorSharding& outside, const AxisList& manual_axes);
TensorSharding seen_from_outside(const TensorSharding& inside, const TensorSharding& declared,
                                 const AxisList& manual_axes);

bool is_named_computation(const Module& module, OpId id);
// `body` has an argument for each operand. Its results are those of the op.
OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body);

}  // namespace shardwise
