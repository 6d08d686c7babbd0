// SPDX-License-Identifier: Apache-2.0
//
// The plan of one exchange: each device receives the elements of its new tile that its old one does not have.
//
//   (12, 12) on x=3, y=4:  [{"x"}, {"y"}]  ->  [{"y"}, {"x"}]       48 bytes; by gathers and permutes 108
#pragma once

#include <optional>

#include "shardwise/reshard/problem.h"

namespace shardwise {

// None if the problem reduces something, or if it is not cheaper than `bytes`. On a mesh with more than 4,096 positions
// along the axes of a dim nobody counts what an exchange sends.
std::optional<ReshardPlan> one_exchange(const ReshardProblem& problem, double bytes);

}  // namespace shardwise
