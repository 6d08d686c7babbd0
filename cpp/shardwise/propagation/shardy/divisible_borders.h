// SPDX-License-Identifier: Apache-2.0
//
// Shardy's handling of uneven borders: inputs and outputs of functions, named and manual computations are split evenly.
//
//   tensor<6x8xf32> [{"a"}, {}] on a=4, closed     [{"a":(1)2}, {}]     the largest prefix that divides 6
//   the same, open, in main                        [{}, {}]             and there no part of an axis stays
//
// Runs only under CompileOptions::strict_divisible; by default, shardwise keeps uneven shards.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// A no-op unless the option is set. Must run before shardings are closed, because open dims are handled differently.
void shrink_borders_to_divisible(Module& module, PassContext& context);

}  // namespace shardwise
