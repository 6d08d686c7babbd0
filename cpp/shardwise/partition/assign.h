// SPDX-License-Identifier: Apache-2.0
//
// Writes a Choice down: every op on operands that are where it takes them, and the reshards that bring them there.
//
//   %0 = stablehlo.dot_general %x, %w     %x: [{"data"}, {"model"}]  %w: [{"model"}, {}]  %0: [{"data"}, {}]
//
//   %0 = stablehlo.dot_general %x, %w     %0: [{"data"}, {}], unreduced={"model"}: each device has a part of the sum
//   %1 = sdy.reshard %0 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"}
//
// Constraints become reshards (or nothing). Constants are created once per needed placement. Results get their sharding
// without unreduced axes. It decides nothing: what is not in the Choice follows from it.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// Makes the choice first if no pass has (choice/choose.h).
Module assign(Module module, PassContext& context);
inline constexpr Pass kAssign{.name = "assign",
                              .doc = "write down the sharding that each op is computed in, and insert reshards",
                              .run = assign,
                              .needs_runnable = true,
                              .takes = {.last = Stage::kAssigned},
                              .makes = Stage::kAssigned};

}  // namespace shardwise
