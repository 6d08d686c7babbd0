// SPDX-License-Identifier: Apache-2.0
//
// Writes each chain of elementwise ops (analysis/elementwise_chains.h) as a tile program: one pass over memory.
//
//   %0 = stablehlo.multiply %x, %x        group {%0, %1, %2}: inputs {%x, %y}
//   %1 = stablehlo.add %0, %y
//   %2 = stablehlo.tanh %1
//
// The result equals that of the separate ops bit for bit.
#pragma once

#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/tile/program.h"

namespace shardwise {

struct FusedGroup {
  std::vector<OpId> ops;        // in program order; the last one is the root
  std::vector<ValueId> inputs;  // arrays of the root's shape, or scalars
  TileProgram program;
};

// By root op. `varying` is indexed by value.
std::unordered_map<OpId, FusedGroup> fuse_elementwise(const Module& module, const std::vector<DigitSet>& varying);

}  // namespace shardwise
