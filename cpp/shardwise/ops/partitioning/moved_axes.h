// SPDX-License-Identifier: Apache-2.0
//
// Placements of ops that need a dim whole: its axes shard another dim while the op runs.
//
//   sort of f32[16, 64] along dim 1, sharded [{}, {"x"}] on x=8      [{"x"}, {}]: two all_to_alls
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Adds a placement for each way to give the axes of `whole` to other factors that have none.
void placements_along_other_dims(const ShardingRule& rule, std::span<const FactorId> whole,
                                 std::span<const AxisList> axes, std::vector<OpPlacement>& found);

}  // namespace shardwise
