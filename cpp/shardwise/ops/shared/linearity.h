// SPDX-License-Identifier: Apache-2.0
//
// How an op distributes over a pending reduction of its operands:
//
//   add %a, %b             sums: kJoint       all operands unreduced, or none
//   multiply %a, %b        sums: kEach        one operand unreduced
//   convert f32 to bf16    sums: kNone        it rounds
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Judges by the op alone, not by where its operands are.
Linear linear_in(const OpView& op, const ShardingRule& rule, Reducer reducer);

}  // namespace shardwise
