// SPDX-License-Identifier: Apache-2.0
//
// One kernel call instead of one per shard, where the shards of an op lie side by side along a factor of its rule:
//
//   %2 = stablehlo.dot_general %0, %1   local 64x512 · 512x512, %0 varies along x = 8        ([i, k], [k, j])->([i, j])
//     i passes through, and what varies along x has it: one product 512x512 · 512x512 over the merged view of %0's
//     shards, whose rows are the shards of %2
//
// Every operand that varies along the digit must have the factor, as the only one of a dim, and no other operand may;
// and the op's `infer` must find its attributes right for the merged types too (those of a slice are not). Whether the
// shards really lie so is known only when they exist: if not, each gets its own call.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

struct Merge {
  struct Digit {
    AxisRef axis;
    size_t number = 0;                                // in Digits
    std::vector<std::optional<size_t>> operand_dims;  // none: the operand does not vary along it
    std::vector<size_t> result_dims;
  };
  std::vector<Digit> digits;
  std::vector<TensorType> operands;  // merged types
  std::vector<TensorType> results;
};

// Beside which dim of a value the shards along each digit are expected to lie; dim 0 where nothing is known.
using Homes = std::vector<uint8_t>;

// Which digits of `varying` (by value index) can be merged into one call of `op`; nothing when none can. Of several
// factors that would do, the one where the operands' shards should lie.
std::optional<Merge> find_merge(const OpView& op, const Digits& digits, const std::vector<DigitSet>& varying,
                                const std::vector<Homes>& homes);

// The operands with the merged digits inside their dims, in the order in which they lie in memory, which `order` gets
// as indices of `merge.digits`; nothing when some operand has no single stride there.
std::optional<std::vector<Shards>> merged_operands(const Merge& merge, const std::vector<const Shards*>& operands,
                                                   std::vector<size_t>& order);
// The shards along `axes` of a merged result.
Shards unmerged_result(const Merge& merge, std::span<const size_t> order, size_t result, const Shards& merged,
                       const AxisList& axes);

}  // namespace shardwise
