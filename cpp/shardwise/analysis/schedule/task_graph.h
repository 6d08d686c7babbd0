// SPDX-License-Identifier: Apache-2.0
//
// Splits a region of a local program into tasks, and says which tasks each one waits for:
//
//   %0 = all_gather %w            task 0  transfer                     first needed by task 2
//   %1 = dot_general %x, %v       task 1  kernel {%1, %2}
//   %2 = tanh %1
//   %3 = dot_general %2, %0       task 2  kernel {%3}                  after 0 and 1
//   %4 = all_reduce %3            task 3  transfer                     after 2
//   %5 = scan … 24 trips          task 4  one task for all its trips   after 3
//
// Kernels are the groups of fusion.h; views, annotations and constants are no tasks: who reads them waits for what they are
// views of. Each carry of a loop's body is a task that takes no time, so that what depends on the trip before can be told.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/analysis/fusion.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"

namespace shardwise {

struct Task {
  enum class Kind : uint8_t {
    kCarry,     // an argument of the body of a loop
    kKernel,    // a group of ops
    kTransfer,  // a collective
    kRegions    // a loop, a branch or a call
  };
  Kind kind = Kind::kKernel;
  OpId op;                      // the first of its ops; none for a carry
  uint32_t group = 0;           // of a kernel, in Fusion::groups
  std::vector<uint32_t> after;  // tasks before it
};

struct TaskGraph {
  // Carries first, then the others so that each stands after those that it waits for; otherwise, as in the program.
  std::vector<Task> tasks;
  // By carry of the loop: its task, and those that make it for the next trip. None for one that does not change.
  struct Recurrence {
    uint32_t carry = 0;
    std::vector<uint32_t> made_by;
  };
  std::vector<Recurrence> recurrences;
};

// In linear time. Collectives that send nothing are no tasks.
TaskGraph task_graph(const Module& module, RegionId region, const Fusion& fusion);

// By task: whether its time is that of another one. The links of a ring carry messages both ways at once, so that two shifts in
// opposite directions take no longer than one of them:
//
//   ^bb0(%low, %high):                                           on a ring of 8 devices
//     %0 = collective_permute %low  {axes = {"x"}, shift = 1}    10 us
//     %1 = collective_permute %high {axes = {"x"}, shift = -1}   in the time of %0
//
// Two such shifts in the body of a loop form a pair if both wait only for carries. The second one then takes no time of its own,
// unless it sends more bytes. There are no pairs on a switch, where the link of each device is the limit, nor on a line, where the
// messages that wrap around use the links of the other direction.
std::vector<bool> shifts_beside_opposite(const Module& module, const TaskGraph& graph, const Hardware& hardware);

}  // namespace shardwise
