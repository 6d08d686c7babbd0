// SPDX-License-Identifier: Apache-2.0
//
// Merges the kernel calls of several shards into one, when the shards are adjacent in memory along a factor of the op's
// rule:
//
//   %2 = stablehlo.dot_general %0, %1   local 64x512 · 512x512, %0 varies along x = 8        ([i, k], [k, j])->([i, j])
//     i passes through, and every operand that varies along x has it: one product 512x512 · 512x512 over the
//     merged view of %0's shards, whose rows are the shards of %2
//
// A digit over which the result is reduced at once (early_reduction.h) merges along a reduction factor: k, if both
// operands vary along x there.
//
// Every operand that varies along the digit must have the factor, as the only one of a dim, and no other operand may;
// and the op must be able to prepare a kernel for the merged types (a slice is not: its limits are those of one shard).
// Adjacency is checked at run time; shards that are not adjacent get their own calls.
#pragma once

#include <optional>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/digits.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

// Partial results along these digits are combined by the op that makes them.
struct Reduction {
  DigitSet digits = 0;
  Reducer reducer = Reducer::kNone;
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

struct Merge {
  struct Digit {
    AxisRef axis;
    size_t number = 0;                                // in Digits
    std::vector<std::optional<size_t>> operand_dims;  // none: the operand does not vary along it
    std::vector<std::optional<size_t>> result_dims;   // none: it is reduced over the digit
  };
  std::vector<Digit> digits;
  std::vector<TensorType> results;  // merged types
  Kernel kernel;                    // prepared for them
};

// For each digit, the dim of a value along which its shards are expected to be adjacent; dim 0 if unknown.
using Homes = std::vector<uint8_t>;

// The digits of `varying` (indexed by value) that can be merged into one call of `op`, or none. Among several suitable
// factors, prefers the one along which the operands' shards should be adjacent. All digits of `reduction` are merged.
std::optional<Merge> find_merge(const OpView& op, const Digits& digits, const std::vector<DigitSet>& varying,
                                const std::vector<Homes>& homes, Reduction reduction = {});

// The axes along which merged calls stay apart.
AxisList unmerged_axes(const Merge& merge, AxisList axes);
// The operands with the merged digits inside their dims, in memory order, which `order` receives as indices of
// `merge.digits`. Returns none when the merged dim of some operand has no single stride.
std::optional<std::vector<Shards>> merged_operands(const Merge& merge, const std::vector<const Shards*>& operands,
                                                   std::vector<size_t>& order);
// The shards along `axes` of a merged result.
Shards unmerged_result(const Merge& merge, std::span<const size_t> order, size_t result, const Shards& merged,
                       const AxisList& axes);

}  // namespace shardwise
