// SPDX-License-Identifier: Apache-2.0
//
// Plans that only move: nothing is reduced.
//
//   gather_and_slice        always works: gathers the dims that must change, and slices them
//
//   one_exchange            each device receives the elements of its new tile that its old one does not have
//     (12, 12) on x=3, y=4:  [{"x"}, {"y"}]  ->  [{"y"}, {"x"}]       48 bytes; by gathers and permutes 108
//
//   named_collectives       at most one collective that has a name: an all-gather, an all-to-all or a permute, with slices
//                           around it. Compares the digits of the two placements dim by dim; there is no search.
//     [{"x"}, {}]      -> [{}, {"y"}]       all_slice "y", all_gather "x"
//     [{"x"}, {}]      -> [{}, {"x", "y"}]  all_slice "y" on dim 0, all_to_all {"x", "y"} from dim 0 to dim 1
//     [{"x"}, {"y"}]   -> [{"y"}, {"x"}]    on axes of one size: permute; else none
#pragma once

#include <optional>
#include <vector>

#include "shardwise/mesh/exchange.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

ReshardPlan gather_and_slice(const ReshardProblem& problem);

// From blocks to blocks, in place.
ExchangeMap exchange_between(const Placement& from, const Placement& to, DimSpan shape);
// The bytes are an upper bound where axes are cut in ways that no single split has and the devices are too many to
// count.
ReshardPlan one_exchange(const ReshardProblem& problem);

std::vector<ReshardPlan> named_collectives(const ReshardProblem& problem);
// The cheapest one, by ReshardPlan::cost.
std::optional<ReshardPlan> one_named_collective(const ReshardProblem& problem);

}  // namespace shardwise
