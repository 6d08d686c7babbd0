// SPDX-License-Identifier: Apache-2.0
//
// Random numbers: rng draws from a hidden state, rng_bit_generator from a state that it returns.
//
//   %state, %bits = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY
//       : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x4xui32>)
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> rng_ops();

}  // namespace shardwise
