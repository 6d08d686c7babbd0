// SPDX-License-Identifier: Apache-2.0
//
// Ops as the ops that they consist of (OpDef::decompose):
//
//   %1 = stablehlo.dot %x, %w        ->   %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
//   %2 = chlo.broadcast_add %1, %b        %2 = broadcast_in_dim %b, dims = [1];  %3 = add %1, %2
//
// Made ops have the location and the origin of the op. A value that takes the place of a result has its sharding and
// its origin; the others have none.
#pragma once

#include <cstdint>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Replaces all ops that `is_chosen` holds for, in all functions and regions; also those that are made. Returns how many.
using OpFilter = bool (*)(const OpDef& def);
int64_t decompose_ops(Module& module, OpFilter is_chosen);

}  // namespace shardwise
