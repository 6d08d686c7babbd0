// SPDX-License-Identifier: Apache-2.0
//
// How an op distributes over a pending reduction of its operands:
//
//   add %a, %b             sums: kJoint       all operands unreduced; a whole one becomes an addend
//   select %p, %a, %b      any: kJoint        in %a and %b
//   multiply %a, %b        sums: kEach        one operand unreduced
//   convert f32 to bf16    sums: kNone        it rounds
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Judges only by the op, not by where its operands are. Never kDividend: a division that passes a sum on is kFirst.
Linear linear_in(const OpView& op, const ShardingRule& rule, Reducer reducer);

// Whether the results are copies of operand elements, bit for bit.
bool only_copies(const OpDef& def);

// Whether a whole operand of a joint op is an addend of the reduction without a mask: a constant that is neutral.
bool is_free_addend(const OpView& op, size_t operand, Reducer reducer);

}  // namespace shardwise
