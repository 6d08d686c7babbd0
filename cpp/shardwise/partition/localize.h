// SPDX-License-Identifier: Apache-2.0
//
// From global shapes to the program of one device, which is the same for all devices and for any number of them:
//
//   %1 = sdy.all_gather [{"x"}] %0 out_sharding=<@mesh, [{}]> : tensor<17xf32>        %0: [{"x"}], x = 4
//
//   %1 = "shardwise.all_gather"(%0) <{gather = …[{"x"}], mesh = @mesh}> : (tensor<5xf32>) -> tensor<20xf32>
//   %2 = stablehlo.slice %1 [0:17] : (tensor<20xf32>) -> tensor<17xf32>
//
// Ops go through OpDef::partition (partition_context.h), collectives are made local here: a gathered dim is trimmed to
// what the tensor has, a dim to be split is padded to a multiple. Argument i of the local main is the shard of global
// argument i, and the same for results. PassContext::layouts tells for each local value which global value it is a
// shard of, and how.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// How a value with this sharding (none: whole everywhere) lies on the devices; the padding is garbage where there is
// some.
LocalLayout layout_of(const Module& module, ValueId value);

Module localize(Module module, PassContext& context);
inline constexpr Pass kLocalize{.name = "localize",
                                .doc = "turn global shapes into the program of one device",
                                .run = localize,
                                .needs_runnable = true,
                                .takes = {.first = Stage::kResharded, .last = Stage::kResharded},
                                .makes = Stage::kLocal};

}  // namespace shardwise
