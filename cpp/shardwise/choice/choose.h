// SPDX-License-Identifier: Apache-2.0
//
// Decides how each op is computed, and which data must move for it:
//
//   %0 = stablehlo.dot_general %x, %w     %x: [{"data"}, {"model"}]  %w: [{"model"}, {}]  %0: [{"data"}, {}]
//
//   %0 = stablehlo.dot_general %x, %w     %0: [{"data"}, {}], unreduced={"model"}: each device has a part of the sum
//   %1 = sdy.reshard %0 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"}
//
// The compute sharding assigns axes to the factors of the op's rule. Each tensor of the op is tried as the leader,
// whose axes come first. The plans of plan_reshards give the bytes that a device receives to move the operands, and the
// results to where propagation has them. The candidate with the fewest bytes wins. Among equal ones, the first criterion
// that differs decides: a pending reduction stays pending (if no reduced operand becomes unreduced for it), the work of
// one device is less, the reshards are fewer.
// Factors that need replication and permutation factors get axes only by a method of the op, such as an exchange; by the
// rule they get none. A factor inside a compound dim gets axes only if everything before it in that dim is fully and
// evenly sharded.
//
// A value keeps the sharding that its op produced until a user needs another one. Each user's reshard starts from the
// nearest existing version, and versions are shared. This includes pending reductions. An op that is linear in an
// unreduced operand (OpDef::linear) uses it directly if its own result is not more expensive to
// reduce. Otherwise the value is reduced directly to the sharding that the user needs, so that the reduction becomes a
// reduce-scatter if possible.
//
// Regions of loops and branches are chosen like main. A carry has one placement: the one that propagation gave to the
// result of the loop, or one that is unreduced, if the body only accumulates into it (greedy/accumulators.h). Values from
// around a loop are resharded before it, once (versions.h).
//
// Functions are chosen like main: the placements of their arguments and results are those that propagation gave them,
// and each call reshards its operands to them.
//
// Constraints become reshards (or nothing). Constants are created once per needed sharding. Results get their
// sharding without unreduced axes.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// Makes PassContext::choice. The module stays as it is, but for shardings of other meshes that have digits of the
// program's (unify_meshes.h).
Module choose(Module module, PassContext& context);
inline constexpr Pass kChoose{.name = "choose",
                              .doc = "choose the placement that each op is computed in, as data",
                              .run = choose,
                              .needs_runnable = true,
                              .takes = {.last = Stage::kAssigned},
                              .chooses = true};

}  // namespace shardwise
