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
//
// Plans that send least are taken. If the hardware is known, a reduction in stages is, too, where that takes less time: a
// sum over node=4 and gpu=8 that is split over "node" alone.
//
//   reduce_scatter over node, all_reduce over gpu            1.19 times the tensor; 3/4 of it between nodes of 8 GPUs
//   reduce_scatter over node and gpu, all_gather over gpu    1.19 times the tensor; 3/32 of it between them
#pragma once

#include <optional>
#include <span>
#include <string>

#include "shardwise/cost/hardware.h"
#include "shardwise/reshard/problem.h"

namespace shardwise {

ReshardPlan plan_reshard(const ReshardProblem& problem, const Hardware* hardware = nullptr);
// The cheapest plan of these moves (move_name), which may send more than the best plan. Returns none if there is none.
std::optional<ReshardPlan> plan_with_moves(const ReshardProblem& problem, std::span<const std::string> moves);

}  // namespace shardwise
