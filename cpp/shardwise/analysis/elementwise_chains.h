// SPDX-License-Identifier: Apache-2.0
//
// Chains of elementwise ops that the runtime computes in one pass over memory:
//
//   %0 = stablehlo.multiply %x, %x        chain {%0, %1, %2}: inputs {%x, %y}; %0 and %1 are never arrays
//   %1 = stablehlo.add %0, %y
//   %2 = stablehlo.tanh %1
//
// A producer joins its consumer when it has no other user, has the consumer's shape, and varies along the same digits
// (otherwise every shard would compute it again). Splat constants, and what elementwise ops make of them, become
// scalars of the chain. A chain is in one region: what a loop captures is not computed again in each trip.
//
// The inputs are alive until the root runs. It writes over one of them where nothing else needs it.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/base/ndarray.h"
#include "shardwise/ir/module.h"
#include "shardwise/mesh/digits.h"

namespace shardwise {

struct ElementwiseChain {
  std::vector<OpId> ops;        // in program order; the last one is the root
  std::vector<ValueId> inputs;  // arrays of the root's shape, or scalars; in the order of their first reads
};

struct ElementwiseChains {
  // Those of main and of the regions of its loops and branches, by their root op. Every elementwise op of them is in
  // exactly one chain.
  std::unordered_map<OpId, ElementwiseChain> by_root;
  std::unordered_map<ValueId, Scalar> splats;  // values that are scalars of chains
};

// `varying` is indexed by value.
ElementwiseChains elementwise_chains(const Module& module, const std::vector<DigitSet>& varying);

// The memory of a chain's result: that of an input, or new memory whose dims lie, from the outermost to the innermost,
// in `order`. Inputs of one owner may be overwritten; a scalar has as many strides of 0 as the shape has dims.
struct ChainMemory {
  std::optional<size_t> over;  // an input
  std::vector<size_t> order = {};
};
ChainMemory chain_memory(std::span<const NdArray> inputs, DType dtype, const Dims& shape);

}  // namespace shardwise
