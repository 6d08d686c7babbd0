// SPDX-License-Identifier: Apache-2.0
//
// Shardy's way with uneven borders: what enters or leaves a function, a named or a manual computation is split evenly.
//
//   tensor<6x8xf32> [{"a"}, {}] on a=4, closed     [{"a":(1)2}, {}]     the largest beginning that divides 6
//   the same, open, in main                        [{}, {}]             and there no part of an axis stays
//
// Only under CompileOptions::strict_divisible: shardwise runs uneven shards as they are.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// Before shardings are closed: it matters which dims are open.
void shrink_borders_to_divisible(Module& module);

}  // namespace shardwise
