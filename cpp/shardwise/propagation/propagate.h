// SPDX-License-Identifier: Apache-2.0
//
// Infers a sharding for every value from the user's annotations:
//
//   func @main(%x: tensor<8x4xf32> [{"data"}, {}], %w: tensor<4x16xf32>) -> tensor<8x16xf32> {
//     %0 = dot_general %x, %w          %0: [{"data", ?}, {?}]     along the factor of dim 0 of %x
//     %1 = tanh %0                     %1: [{"data", ?}, {?}]
//
// Each op's rule defines how its tensors share factors; propagate_factors.h decides what one op does. The order of
// visits is Shardy's, because it decides conflicts. One sweep runs from top to bottom; when a sharding grows, the op
// that defines the value is visited again, after the value's users. Before and after each sweep, each result of main
// and the value returned there get the same sharding. That is one round. Ops join round by round
// (propagation_rounds.h), and all rounds repeat for each user priority (user_priorities.h).
//
// This terminates, because dims only gain axes. No step depends on more than the axes, so the number of devices does
// not matter.
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/pass.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/shardy/visit_order.h"

namespace shardwise {

// The passes that `propagate` consists of. The last one makes calls again of the regions that kCallsToRegions made.
std::span<const Pass> propagation_steps();
inline constexpr std::string_view kCallsToRegions = "calls_to_regions";

// Constants are split, constraints applied, shardings propagated, then closed. A program of a later stage has to be
// assigned again.
Module propagate(Module module, PassContext& context);
inline constexpr Pass kPropagate{.name = "propagate",
                                 .doc = "give every value a sharding",
                                 .run = propagate,
                                 .steps = propagation_steps,
                                 .takes = {.last = Stage::kResharded},
                                 .makes = Stage::kPropagated,
                                 .keeps = Snapshot::kPropagated,
                                 .reads = kAllOptions};

// Only propagates: open dims stay open, and values that nothing reached have no sharding.
void propagate_shardings(Module& module, PassContext& context, Strategy strategy, Priorities priorities,
                         VisitOrder visit_order = VisitOrder::kPipeline);

// Only infers the shardings of these values, from those of all others, which are fixed.
void propagate_into(Module& module, const CompileOptions& options, std::span<const ValueId> values);

}  // namespace shardwise
