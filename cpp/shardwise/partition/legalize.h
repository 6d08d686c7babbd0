// SPDX-License-Identifier: Apache-2.0
//
// Replaces the ops that have no kernel by the ops that they consist of (OpDef::decompose), in regions, too:
//
//   %1 = chlo.broadcast_add %x, %b        %1 = broadcast_in_dim %b, dims = [1]    : [{"data"}, {}]
//        : [{"data"}, {}]             ->  %2 = add %x, %1                         : [{"data"}, {}]
//
// It runs after `propagate`, so that why() and the propagated program show the user's ops. The values that it
// makes get their shardings by propagation from those of all others, which are fixed.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module legalize(Module module, PassContext& context);
inline constexpr Pass kLegalize{.name = "legalize",
                                .doc = "replace ops without a kernel by the ops that they consist of",
                                .run = legalize,
                                .takes = {.last = Stage::kPropagated}};

}  // namespace shardwise
