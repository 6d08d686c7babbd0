// SPDX-License-Identifier: Apache-2.0
//
// Shardy's ops that steer propagation and compute nothing.
//
//   %3 = sdy.data_flow_edge %1 sharding=<@mesh, [{"x"}, {?}]> : tensor<8x8xf32>
//   %4 = sdy.propagation_barrier %3 allowed_direction=FORWARD : tensor<8x8xf32>
//   sdy.sharding_group %4 group_id=3 : tensor<8x8xf32>
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> propagation_control_ops();

ValueId create_data_flow_edge(Builder& builder, ValueId owner);

}  // namespace shardwise
