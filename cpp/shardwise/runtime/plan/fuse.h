// SPDX-License-Identifier: Apache-2.0
//
// Fuses chains of elementwise ops into one pass over memory.
//
//   %0 = stablehlo.multiply %x, %x        group {%0, %1, %2}: inputs {%x, %y}, one tile program
//   %1 = stablehlo.add %0, %y
//   %2 = stablehlo.tanh %1
//
// A producer joins its consumer when it has no other user, has the consumer's shape, and varies along the same digits
// (otherwise every shard would compute it again). Splat constants, and what elementwise ops make of them, become
// scalars of the program. The result equals that of the separate ops bit for bit. A group is in one region: what a loop
// captures is not computed again in each trip.
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

// The groups of main and of the regions of its loops and branches, by their root op. Every elementwise op of them is in
// exactly one group. `varying` is indexed by value.
std::unordered_map<OpId, FusedGroup> fuse_elementwise(const Module& module, const std::vector<DigitSet>& varying);

}  // namespace shardwise
