// SPDX-License-Identifier: Apache-2.0
//
// The plan of a reshard.
//
//   movement     one collective. Each device receives the elements of its new tile that it does not hold, by one
//                exchange, or by a named collective (movement.h) if that sends no more. A named
//                collective sends its padding, so uneven tiles are mostly exchanged.
//   a reduction  an all-reduce; or a reduce-scatter to some of the dims, an all-reduce of what they cannot take, and
//                movement. It tries the dims where the target has the axes, and each dim for all others.
//
// The work has a bound that does not depend on the size of the axes.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "shardwise/reshard/problem.h"

namespace shardwise {

ReshardPlan plan_reshard(const ReshardProblem& problem);
// The cheapest plan of these moves (move_name), which may send more than the best plan. Returns none if there is none.
std::optional<ReshardPlan> plan_with_moves(const ReshardProblem& problem, std::span<const std::string> moves);

}  // namespace shardwise
