// SPDX-License-Identifier: Apache-2.0
//
// Chains of elementwise ops become one pass over memory.
//
//   %0 = stablehlo.multiply %x, %x        group {%0, %1, %2}: inputs {%x, %y}, one tile program
//   %1 = stablehlo.add %0, %y
//   %2 = stablehlo.tanh %1
//
// A producer joins its consumer when nobody else uses it, it has the consumer's shape, and it varies along the same
// digits (else it would be computed again for every shard). Splat constants become scalars of the program. The bits are
// those of the ops one by one.
#pragma once

#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/tile/program.h"

namespace shardwise {

struct FusedGroup {
  std::vector<OpId> ops;        // in program order; the last one is the root
  std::vector<ValueId> inputs;  // arrays of the root's shape, or scalars
  TileProgram program;
};

// The groups of `region`, by the index of their root op; every elementwise op of the region is in exactly one.
// `varying` is by value index.
std::vector<FusedGroup> fuse_elementwise(const Module& module, RegionId region, const std::vector<DigitSet>& varying);

}  // namespace shardwise
