// SPDX-License-Identifier: Apache-2.0
//
// Shifts that run beside others. The links of a ring carry messages in both directions at once, so that two shifts of a loop's
// body in opposite directions take no longer than one of them:
//
//   ^bb0(%low, %high):                                           on a ring of 8 devices
//     %0 = collective_permute %low  {axes = {"x"}, shift = 1}    10 us
//     %1 = collective_permute %high {axes = {"x"}, shift = -1}   in the time of %0
//
// Of a pair that waits for nothing but carries, the second one takes no time of its own if it has no more bytes. On switches the
// devices' own links bind, and the ends of a line send what wraps against the other direction: there are no pairs.
#pragma once

#include <vector>

#include "shardwise/analysis/task_graph.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

// By task: whether its time is that of an earlier one.
std::vector<bool> shifts_beside_opposite(const Module& module, const TaskGraph& graph, const Hardware& hardware);

}  // namespace shardwise
