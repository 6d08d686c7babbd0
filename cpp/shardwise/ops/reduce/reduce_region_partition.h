// SPDX-License-Identifier: Apache-2.0
//
// Partitions reduce with a region that no collective supports, over a sharded dim: argmax of 8 x 64 rows, dim 1 on x =
// 8
//
//   %v, %i = stablehlo.reduce(%x, %iota) across dimensions = [1]           8 rows, each device has one winner per row
//   %3 = "shardwise.all_to_all"(pad %v) {"x" from dim 0 to dim 1}          1 x 8 -> 8 x 1: all winners of one row
//   %5, %6 = stablehlo.reduce(%3, %4) across dimensions = [0]              in the order of the shards
//   %7 = "shardwise.all_gather"(%6) {"x" on dim 0}                         8 rows
//
// When splitting the rows saves nothing (a scalar result), an all_gather of the partial results replaces the first
// step: that is a method of its own.
//
// Elements are combined in the order of their indices: dims from the last to the first, shards major to minor. Padding
// of uneven dims must not count. For argmax, padding is a neutral pair; other regions use the flag of counted_region.
// With the flag, init values count once (for pairs, counting them more often changes nothing).
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

void combine_partial_results(PartitionContext& context);
void combine_gathered_results(PartitionContext& context);  // each device combines all of them

}  // namespace shardwise
