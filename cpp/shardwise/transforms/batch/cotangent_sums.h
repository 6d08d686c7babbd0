// SPDX-License-Identifier: Apache-2.0
//
// Sums of cotangents over the devices of a manual computation, once it is known along which axes its values vary:
//
//   manual axes {x}: %w is equal along x, %0 varies
//   %1 = "shardwise.match_varying"(%0, %w)       "stablehlo.all_reduce"(%0) over {x}
//   %2 = "shardwise.match_varying"(%0, %0)       %0
//
// Values vary as in JAX, where the result of an all_gather varies (ops/collectives/device_ops.h).
#pragma once

#include "shardwise/transforms/batch/batch_dependence.h"

namespace shardwise {

// Finds the sums that a manual computation needs; none if it has no match_varying.
CotangentSums find_cotangent_sums(const OpView& op, const ManualAxes& manual);

// Replaces the match_varying in a manual computation that is in no other one.
void sum_cotangents(Module& module, OpId manual);

}  // namespace shardwise
