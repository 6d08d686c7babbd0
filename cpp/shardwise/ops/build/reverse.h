// SPDX-License-Identifier: Apache-2.0
//
// Reverses that undo each other:
//
//   reverse(reverse(x))                             x
//   reverse(cumulative sum(reverse(x)))             a cumulative sum from the other end
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

bool is_reverse(const OpDef& def);
// The result of the reverse `op`, with fewer ops; none if that is not possible. Annotated values and those that others
// read stay.
ValueId folded_reverse(Builder& builder, const OpView& op);

}  // namespace shardwise
