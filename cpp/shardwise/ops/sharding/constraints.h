// SPDX-License-Identifier: Apache-2.0
//
// Identity ops that carry a sharding: a user's constraint (`sdy.sharding_constraint`), and a change of sharding that
// `assign` inserts (`sdy.reshard`). The sharding is a column of the result value.
//
//   %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {?}]> : tensor<8x4xf32>
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> constraint_ops();

// `cause`: what the ledger and why() call a constraint that no user has written; else "".
ValueId create_sharding_constraint(Builder& builder, ValueId operand, const TensorSharding& sharding,
                                   std::string_view cause = {});
ValueId create_reshard(Builder& builder, ValueId operand, const TensorSharding& sharding);

}  // namespace shardwise
