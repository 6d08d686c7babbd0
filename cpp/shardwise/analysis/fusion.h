// SPDX-License-Identifier: Apache-2.0
//
// Groups of ops that hardware runs as one kernel. Memory is paid at the border of a group, once:
//
//   %0 = dot_general %x, %w          group {%0, %2, %3}: reads %x, %w, %b; writes %3
//   %1 = broadcast_in_dim %b         no op of a group: %b is read where %1 is used
//   %2 = add %0, %1
//   %3 = tanh %2
//
//   %4 = reduce max %s over rows     softmax is one group {%4, %6, %7, %8, %10}: reads %s, writes %10. A row stays on
//   %5 = broadcast_in_dim %4         the chip, so that what is computed from its reduction needs no memory. A sum over
//   %6 = subtract %s, %5             columns ends its group: each element is read again for what depends on it.
//   %7 = exponential %6
//   %8 = reduce add %7 over rows
//   %9 = broadcast_in_dim %8
//   %10 = divide %7, %9
//
// An elementwise op or a row reduction belongs to the group of its producer. Elementwise groups that meet in an op become
// one. A group has one product, sort, gather or such, with two exceptions, where the hardware has `fused_attention`: a
// product of the rows of a batched product that are reduced, and the gradient of both, which computes the first product
// again instead of reading its result:
//
//   %s = dot_general %q, %k  (batched)      one group with the softmax of %s: reads %q, %k, %v; writes %o
//   %o = dot_general softmax(%s), %v
//
// The module may be a global one or that of a device. Regions are apart: a loop's body reads its captures from memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// A tensor of an op (operands first) at the border of its group, and the value in memory that it is, or is a view of. The
// bytes of a group are those of its accesses, so that each op has its share.
struct BorderAccess {
  OpId op;
  size_t tensor = 0;
  ValueId memory;
  friend bool operator==(const BorderAccess&, const BorderAccess&) = default;
};

struct FusionGroup {
  std::vector<OpId> ops;            // in the order of the program
  std::vector<BorderAccess> reads;  // several ones of a value are paid together, at most as all of it
  std::vector<BorderAccess> writes;
  // Ops of other groups that this one computes again: the first product of an attention, in its gradient.
  std::vector<OpId> computed_again;
  bool is_attention = false;
};

struct FusionOptions {
  bool fused_attention = false;  // as Hardware::fused_attention
  // Whether an op reads an operand at another placement than its producer makes it: then memory is paid between them.
  // Empty: nowhere.
  std::function<bool(const OpView& op, size_t operand)> is_cut = {};
};

struct Fusion {
  static constexpr uint32_t kNoGroup = ~uint32_t{0};
  std::vector<FusionGroup> groups;
  // By op. None for views, annotations, constants, and what makes its own time: collectives, loops, branches, calls.
  std::vector<uint32_t> group_of;
};

}  // namespace shardwise
