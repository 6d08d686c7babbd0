// SPDX-License-Identifier: Apache-2.0
//
// Which collectives of a region become one, by its schedule (analysis/schedule/stream_schedule.h). A link takes, with each transfer
// that it begins, those that are ready by then:
//
//   link      g4 [====]                       [===========]                  g4 alone, then g3, g2 and g1 together
//   ready     g4     g3   g2  g1
//   compute   [layer 4][layer 3][layer 2][layer 1]             [update 4][update 3] …
//
// No kernel starts later than in the schedule of single transfers: the group ends before the first use of any of its results
// there, and no link waits for a later operand unless it has nothing else to send until then. Beside what is alive, the
// operands and the results of a group fit below the peak of the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shardwise/analysis/schedule/region_times.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/use_lists.h"
#include "shardwise/partition/combine/memory_headroom.h"

namespace shardwise {

struct CombinedGroup {
  RegionId region;
  std::vector<OpId> ops;  // in the order of the schedule; one that only moves, to be sent in its turn
  size_t before = 0;      // the place in the region where their operands are made, and no result is used
};

// Whether an op may become a part of another one.
bool is_combinable(const Module& module, OpId op);
// The regions with two ops that may become one.
std::vector<RegionId> regions_to_combine(const Module& module);

// A group has at most `most_bytes`, of operands or of results, whichever are more. `times`: of the region.
std::vector<CombinedGroup> combined_groups(const Module& module, const UseLists& uses, RegionId region,
                                           const RegionTimes& times, const Hardware& hardware, MemoryHeadroom& headroom,
                                           int64_t most_bytes);

}  // namespace shardwise
