// SPDX-License-Identifier: Apache-2.0
//
// Plans of at most one collective that has a name: an all-gather, an all-to-all or a permute, with slices around it. It
// compares the digits of the two placements dim by dim; there is no search.
//
//   [{"x"}, {}]      -> [{}, {"y"}]       all_slice "y", all_gather "x"
//   [{"x"}, {}]      -> [{}, {"x", "y"}]  all_slice "y" on dim 0, all_to_all {"x", "y"} from dim 0 to dim 1
//   [{"x"}, {"y"}]   -> [{"y"}, {"x"}]    on axes of one size: permute; else none
#pragma once

#include <optional>

#include "shardwise/reshard/problem.h"

namespace shardwise {

// For a problem that reduces nothing.
std::vector<ReshardPlan> named_collectives(const ReshardProblem& problem);
// The one of fewest bytes.
std::optional<ReshardPlan> one_named_collective(const ReshardProblem& problem);

}  // namespace shardwise
