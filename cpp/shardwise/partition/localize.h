// SPDX-License-Identifier: Apache-2.0
//
// Turns global shapes into the program of one device, which is the same for all devices and for any number of them:
//
//   %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<17xf32>        %0: [{"x"}], x = 4
//
//   %1 = "shardwise.all_gather"(%0) <{gather = …[{"x"}], mesh = @mesh}> : (tensor<5xf32>) -> tensor<20xf32>
//   %2 = stablehlo.slice %1 [0:17] : (tensor<20xf32>) -> tensor<17xf32>
//
// OpDef::partition localizes ops (emission/local_partition_context.h), and emission/localize_collectives.h collectives: a
// gathered dim is trimmed to the tensor's size, and a dim to be split is padded to a multiple. Argument i of the local
// main, and of each function that it calls, is the shard of global argument i; results correspond likewise.
// `Module::part` records which part of a global value each local value holds.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module localize(Module module, PassContext& context);
inline constexpr Pass kLocalize{.name = "localize",
                                .doc = "turn global shapes into the program of one device",
                                .run = localize,
                                .needs_runnable = true,
                                .takes = {.first = Stage::kResharded, .last = Stage::kResharded},
                                .makes = Stage::kLocal};

}  // namespace shardwise
