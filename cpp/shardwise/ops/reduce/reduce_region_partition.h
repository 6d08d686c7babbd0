// SPDX-License-Identifier: Apache-2.0
//
// reduce by a region that no collective knows, over a sharded dim: argmax of 8 x 64 rows, dim 1 sharded on x = 8
//
//   %v, %i = stablehlo.reduce(%x, %iota) across dimensions = [1]           8 rows, one winner of each on every device
//   %3 = "shardwise.all_to_all"(reshape %v) {"x" from dim 0 to dim 1}      1 x 8 -> 8 x 1: all winners of one row
//   %5, %6 = stablehlo.reduce(%3, %4) across dimensions = [0]              in the order of the shards
//   %7 = "shardwise.all_gather"(%6) {"x" on dim 0}                         8 rows
//
// Where splitting the rows saves nothing (a scalar result), the partial results are gathered instead of the first step.
//
// Elements are combined in the order of their indices: dims from the last to the first, shards major to minor. What
// stands behind the end of an uneven dim must not count. Pairs of argmax have a neutral pair for it; other regions
// count by the flag of counted_region. So the init values count once there (for pairs the number does not matter).
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

void partition_exchanged_reduce(PartitionContext& context);

}  // namespace shardwise
