// SPDX-License-Identifier: Apache-2.0
//
// The padding of a local result, which follows from that of the operands.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// The padding after an op that has no rule for it: garbage, or none where no dim is uneven.
Padding result_padding(const LayoutView& layout);
// … after an op that only moves the elements of operand 0.
Padding moved_padding(const PartitionContext& context);

}  // namespace shardwise
