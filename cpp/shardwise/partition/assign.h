// SPDX-License-Identifier: Apache-2.0
//
// Decides how each op is computed, and says what must move for it:
//
//   %0 = stablehlo.dot_general %x, %w     %x: [{"data"}, {"model"}]  %w: [{"model"}, {}]  %0: [{"data"}, {}]
//
//   %0 = stablehlo.dot_general %x, %w     %0: [{"data"}, {}], unreduced={"model"}: each device has a part of the sum
//   %1 = sdy.reshard %0 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"}
//
// The compute sharding gives axes to the factors of the op's rule. Each tensor of the op is tried as the leader whose
// axes come first; what its operands and results must then move is priced by the plans of plan_reshards, and the
// cheapest wins (then the least work per device, then the fewest reshards). Factors that need replication, and
// permutation factors, get no axes; a factor inside a compound dim only if everything before it in that dim is fully
// sharded, and evenly.
//
// A value stays where its op left it until someone needs it elsewhere: each user's reshard starts from the nearest
// version there is, and versions are shared. That holds for pending reductions too: an op that is linear in an
// unreduced operand (traits linear, linear_reducers) takes it as it is when its own result is no more expensive to
// reduce; else the value is reduced, at once to what the user needs, so that the reduction becomes a reduce-scatter
// where one will do.
//
// Constraints become reshards (or nothing), constants are made once per sharding that is needed, results of main get
// their sharding without unreduced axes.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module assign(Module module, PassContext& context);
inline constexpr Pass kAssign{.name = "assign",
                              .doc = "choose the sharding that each op is computed in, and insert reshards",
                              .run = assign,
                              .needs_runnable = true,
                              .takes = {.last = Stage::kAssigned},
                              .makes = Stage::kAssigned};

}  // namespace shardwise
