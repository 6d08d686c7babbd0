// SPDX-License-Identifier: Apache-2.0
//
// The smaller states behind a broadcast value: Adafactor keeps the means of rows and of columns.
//
//   %0 = add %v_row, …            tensor<64xf32>
//   %1 = rsqrt %0
//   %2 = broadcast_in_dim %1, dims = [0] : tensor<64x128xf32>          state %v_row, whose dim 0 is dim 0 of %2
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// A state that is broadcast into a larger one: dim i of the smaller one is dim `dims[i]` here, or -1.
struct BroadcastState {
  ValueId state;
  std::vector<int> dims;
};

// Appends the arguments behind `value` that its dims can be traced to, each once: through elementwise ops and movements.
void append_broadcast_states(const Module& module, ValueId value, std::span<const ValueId> arguments,
                             std::vector<BroadcastState>& found);

}  // namespace shardwise
