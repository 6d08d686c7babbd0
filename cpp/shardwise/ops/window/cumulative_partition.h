// SPDX-License-Identifier: Apache-2.0
//
// Cumulative ops along sharded dims: each device combines its own rows, then adds the totals of the shards before it.
//
//   cumsum of [1 2 | 3 4 | 5 6] over three devices
//     own rows          [1 3]  [3 7]  [5 11]
//     totals             3      7      11
//     before the shard   0      3      10
//     result            [1 3]  [6 10] [15 21]
//
// The scan of the totals takes one of two forms, which are two methods. The length of neither depends on the number of
// devices:
//
//   rows of w elements, n shards       all_gather, mask, reduce                 (n - 1) * w
//                                      all_to_all, prefix, all_to_all       2 * (n - 1) * ceil(w / n)
//
// In the second form, each device gets the totals of all shards, but only for its own part of the columns.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// For a reduce_window in which each sharded dim has the prefix form or passes through.
void partition_by_gathered_totals(PartitionContext& context);  // the first form
void partition_by_totals(PartitionContext& context);           // the second form

}  // namespace shardwise
