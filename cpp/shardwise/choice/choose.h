// SPDX-License-Identifier: Apache-2.0
//
// Decides how each op is computed, and which data must move for it:
//
//   %0 = stablehlo.dot_general %x, %w     %x: [{"data"}, {"model"}]  %w: [{"model"}, {}]  %0: [{"data"}, {}]
//
//   %0 = stablehlo.dot_general %x, %w     %0: [{"data"}, {}], unreduced={"model"}: each device has a part of the sum
//   %1 = sdy.reshard %0 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"}
//
// The compute sharding assigns axes to the factors of the op's rule (candidates/). A candidate costs what its operands move,
// what a device computes, and what its results move to where propagation has them (costs.h): by time on the hardware of the
// compilation, or by bytes alone. Among equal ones, the first criterion that differs decides: a pending reduction stays
// pending (if no reduced operand becomes unreduced for it), the work of one device is less, the reshards are fewer.
//
//   bf16 (32768, 8192) @ (8192, 8192), k on t=8, the result whole             time         bytes
//     k: "t"   an all_reduce of the result                                    2.64 ms      896 MiB
//     i: "t"   all_to_all of %x, all_gather of %w and of the result           1.99 ms      616 MiB     by time
//     none     both gathered, the whole product on each device                5.75 ms      560 MiB     by bytes
//
// A walk takes one op after another (greedy/). By time there are three walks, and the choice with the lowest price is known
// (choice_prices.h). The whole graph is solved around it (graph/, solve/): what several ops save together no walk sees.
//
//   q, k, v split along the sequence, attention, the result split along the sequence
//     walks      k and v are gathered           28 KiB
//     graph      heads are split in between      7 KiB, by two exchanges
//
// Where an annotation asks for an unreduced value, the op leaves it unreduced if it can (requested_sums.h).
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
// Arrays that the function closes over may be whole on every device, where moving their parts takes time
// (free_arguments.h). Results that no sharding places may be split along other dims, where bytes are minimized
// (candidates/free_results.h).
//
// Constraints become reshards (or nothing). Constants are created once per needed sharding. Results get their
// sharding without unreduced axes.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/choice/solve/cost_graph.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// Makes PassContext::choice. The module stays as it is, but for shardings of other meshes that have digits of the
// program's (unify_meshes.h), and of free arguments.
Module choose(Module module, PassContext& context);

// A loop keeps each carry in the placement that propagation gave it. Weights that are split over the axis of the batch may decide
// this placement:
//
//   state [batch: "d", features]  +=  weights [features: "d"] * …      the state of the gradient is split along features,
//                                                                      and what the forward pass saved along the batch
//
// Returns whether transfers of such values take so much of the chosen program that a second search may pay, in which weights are
// propagated last (CompileOptions::state_last).
bool may_gain_with_state_last(const PassContext& context);
// Returns whether the first of two choices of one program takes less time, or fewer bytes where those are minimized.
bool takes_less(const PassContext& found, const PassContext& known);

// The graph of a program around a choice, the picks of that choice, and those that a compilation would find from there: other
// solvers can be compared on it.
struct ChoiceProblem {
  CostGraph graph;
  std::vector<uint32_t> known, found;
};
ChoiceProblem choice_problem(Module& module, const Choice& known, const CompileOptions& options);

inline constexpr Pass kChoose{.name = "choose",
                              .doc = "choose the placement that each op is computed in, as data",
                              .run = choose,
                              .needs_runnable = true,
                              .takes = {.last = Stage::kAssigned},
                              .chooses = true};

}  // namespace shardwise
