// SPDX-License-Identifier: Apache-2.0
//
// Reverses that undo each other:
//
//   reverse(reverse(x))                             x
//   reverse(cumulative sum(reverse(x)))             a cumulative sum from the other end
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// OpDef::fold of reverse. Annotated values and those that others read stay.
ValueId fold_reverse(Builder& builder, const OpView& op);

}  // namespace shardwise
