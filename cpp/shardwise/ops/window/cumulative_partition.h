// SPDX-License-Identifier: Apache-2.0
//
// Cumulative ops along sharded dims: each device combines its own rows, then the totals of the shards before its own.
//
//   cumsum of [1 2 | 3 4 | 5 6] over three devices
//     own rows          [1 3]  [3 7]  [5 11]
//     totals             3      7      11
//     of those before    0      3      10
//     result            [1 3]  [6 10] [15 21]
//
// The scan of the totals takes one of two forms, whichever receives less; neither depends on the number of devices:
//
//   rows of w elements, n shards       all_gather, mask, reduce                 (n - 1) * w
//                                      all_to_all, prefix, all_to_all       2 * (n - 1) * ceil(w / n)
//
// The second one gives each device the totals of all shards, but of its own part of the columns alone.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

// Partitions a reduce_window whose sharded dims all have the prefix form or pass through.
void partition_cumulative(PartitionContext& context, const Window& window);

}  // namespace shardwise
