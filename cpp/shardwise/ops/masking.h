// SPDX-License-Identifier: Apache-2.0
//
// Padding behind uneven dims, replaced where an op would read it.
//
//   // 17 columns in 4 shards of 5: on the last device columns 15, 16 are data, the other three become 0
//   ValueId x = masked_dims(context, 0, {1}, zero);
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The local operand with `fill` behind the end of each of the given dims. Each of them carries one factor.
ValueId masked_dims(PartitionContext& context, size_t operand, DimSpan dims, Scalar fill);

}  // namespace shardwise
