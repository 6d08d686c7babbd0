// SPDX-License-Identifier: Apache-2.0
//
// What stands behind the end of an uneven dim of a local result.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// What stands behind uneven dims after an op that says nothing about it: garbage, or none where no dim is uneven.
Padding result_padding(const LocalLayout& layout);
// … after an op that only moves the elements of operand 0.
Padding moved_padding(const PartitionContext& context);

}  // namespace shardwise
