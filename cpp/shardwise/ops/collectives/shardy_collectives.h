// SPDX-License-Identifier: Apache-2.0
//
// Shardy's collectives: identities on global values that describe data movement between devices. Each is checked
// against the shardings of its operand and its result (OpDef::verify):
//
//   %0 [{"x", "y"}, {}]
//   %1 = sdy.all_gather [{"y"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]>   "y" must be the last axis of dim 0 of %0
//   %2 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"x"}]> "x" moves from dim 0 to the end of dim 1
//   %3 = sdy.all_slice [{"y"}, {}] %2 out_sharding=<@mesh, [{"y"}, {"x"}]>
//
//   all_reduce               drops axes from unreduced: {"x"}
//   reduce_scatter           the same, and each device keeps its part along these axes
//   collective_permute       other axes, or another device order, with shards of the same sizes
//   replicated_to_unreduced, sharded_to_unreduced   axes become unreduced: one device keeps its copy or part, the
//                            others get zeros
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> shardy_collective_ops();

}  // namespace shardwise
