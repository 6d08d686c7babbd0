// SPDX-License-Identifier: Apache-2.0
//
// Replaces composed ops by their decompositions (OpDef::decompose):
//
//   %1 = stablehlo.dot %x, %w        ->   %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
//   %2 = chlo.broadcast_add %1, %b        %2 = broadcast_in_dim %b, dims = [1];  %3 = add %1, %2
//
// New ops have the location and the origin of the composed op. A value that replaces a result has its sharding and its
// origin; other values have none.
#pragma once

#include <cstdint>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Replaces all ops that `is_chosen` holds for, in all functions and regions; also those that are made. Returns how
// many.
using OpFilter = bool (*)(const OpDef& def);
int64_t decompose_ops(Module& module, OpFilter is_chosen);

}  // namespace shardwise
