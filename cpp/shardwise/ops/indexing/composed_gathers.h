// SPDX-License-Identifier: Apache-2.0
//
// Other forms of gather, which become it: torch_index_select, the rows at the places of an index, and dynamic_gather,
// whose slice sizes are an operand. They take no part in propagation.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> composed_gather_ops();

}  // namespace shardwise
