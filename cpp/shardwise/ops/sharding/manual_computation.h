// SPDX-License-Identifier: Apache-2.0
//
// Shardy's regions: manual_computation, which sees local shapes, and named_computation.
//
//   %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {}]>] out_shardings=[<@mesh, [{"x"}, {?}]>]
//       manual_axes={"x"} (%arg2: tensor<4x8xf32>) { … sdy.return %2 : tensor<4x8xf32> } : …
//
// in_shardings and out_shardings are the sharding columns of the region's arguments and of the results, as seen from
// outside: %arg2 is sharded [{"y"}, {}] for the ops of the region, which do not see manual axes.
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> manual_computation_ops();

// The sharding without manual axes, as the inside of a region sees it; and back, given what the region's text says.
TensorSharding seen_from_inside(const TensorSharding& outside, const AxisList& manual_axes);
TensorSharding seen_from_outside(const TensorSharding& inside, const TensorSharding& declared,
                                 const AxisList& manual_axes);

bool is_named_computation(const Module& module, OpId id);
// `body` has an argument for each operand; its results are the op's.
OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body);

}  // namespace shardwise
