// SPDX-License-Identifier: Apache-2.0
//
// How much more memory the ops of a local program may take without raising its peak:
//
//   %2 = dot_general …     9 MiB alive: the peak
//   %3 = all_reduce %2     5 MiB                     at(region, 1) is 4 MiB
//
// It is read from a walk (analysis/live_bytes.h), whose moments are fewer than the ops of a long program: an op between two of
// them has what the more crowded of its neighbors has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/memory_use.h"
#include "shardwise/ir/module.h"

namespace shardwise {

class MemoryHeadroom {
 public:
  MemoryHeadroom(const Module& module, const MemoryUse& use);

  // Returns the bytes that are free while the op at this place runs; the place may be the end of the region.
  int64_t at(RegionId region, size_t place);

 private:
  struct Moment {
    size_t place = 0;
    int64_t bytes = 0;
  };

  const int64_t peak_;
  const bool has_all_;
  std::unordered_map<RegionId, std::vector<Moment>> moments_;  // in the order of places
};

}  // namespace shardwise
