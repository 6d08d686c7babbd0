// SPDX-License-Identifier: Apache-2.0
//
// The axes that barriers block, also if ops between barrier and value would propagate them:
//
//   %1 = sdy.propagation_barrier %0 allowed_direction=NONE        %0: [{"a"}]
//   %2 = tanh %1            dim 0 of %2 did not get "a": "the barrier blocks propagation, and this value is downstream …"
#pragma once

#include <vector>

#include "shardwise/explanation/lost_axes.h"

namespace shardwise {

std::vector<LostAxis> lost_behind_barriers(AxisHistory& history, AxisTracer& tracer, ValueId value);

}  // namespace shardwise
