// SPDX-License-Identifier: Apache-2.0
//
// Identities that carry a sharding: what a user writes (`sdy.sharding_constraint`) and what `assign` inserts where a
// value must change its sharding (`sdy.reshard`). The sharding is the result value's own.
//
//   %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {?}]> : tensor<8x4xf32>
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> constraint_ops();

ValueId create_sharding_constraint(Builder& builder, ValueId operand, const TensorSharding& sharding);
// Says it of a value that is there: an argument of a function gets the sharding, an op's result a constraint right
// behind it, which takes all uses.
void annotate(Module& module, ValueId value, const TensorSharding& sharding);
ValueId create_reshard(Builder& builder, ValueId operand, const TensorSharding& sharding);

}  // namespace shardwise
