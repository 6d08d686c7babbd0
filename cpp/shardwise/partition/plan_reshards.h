// SPDX-License-Identifier: Apache-2.0
//
// Replaces every reshard by its plan (reshard/plan.h): one of Shardy's collectives, a reduction and one more, or one
// exchange:
//
//   %1 = sdy.reshard %0 <@mesh, [{}, {"x"}]> : tensor<16x4xf32>            %0: [{"x"}, {}]
//   %1 = sdy.all_to_all [{"x"}: 0->1] %0 out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x4xf32>
//
// The cause that `assign` gave a reshard (attribute `cause`) is copied to each of its collectives. If a step leaves a
// dim in blocks other than ceil(size / shards), the value's blocks record it (Module::part).
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// A program that `assign` has not seen stays at its stage.
Module plan_reshards(Module module, PassContext& context);
inline constexpr Pass kPlanReshards{.name = "plan_reshards",
                                    .doc = "turn each reshard into the cheapest collectives",
                                    .run = plan_reshards,
                                    .needs_runnable = true,
                                    .takes = {.last = Stage::kResharded},
                                    .makes = Stage::kResharded,
                                    .keeps = Snapshot::kResharded,
                                    .reads = kOptionsOfPrices};

}  // namespace shardwise
