// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/combine/memory_headroom.h"

#include <algorithm>

namespace shardwise {
namespace {

// A walk with so few moments keeps all of them (memory_use.cpp).
constexpr size_t kMostComplete = 1024;

}  // namespace

MemoryHeadroom::MemoryHeadroom(const Module& module, const MemoryUse& use)
    : peak_(use.peak_bytes), has_all_(use.timeline.size() <= kMostComplete) {
  std::vector<uint32_t> places(module.op_count(), 0);
  for (uint32_t r = 1; r < module.region_count(); ++r) {
    const std::vector<OpId>& ops = module.region(RegionId{r}).ops;
    for (uint32_t i = 0; i < ops.size(); ++i) places[ops[i].index] = i;
  }
  for (const LiveMoment& moment : use.timeline) {
    // What is alive inside of a loop is alive beside the loop, too.
    for (OpId op = module.value(moment.value).op; op;) {
      const RegionId region = module.op(op).parent;
      moments_[region].push_back({places[op.index], moment.bytes});
      op = module.region(region).op;
    }
  }
  // A loop is walked several times, and an op frees after later ones have allocated.
  for (auto& [region, moments] : moments_) std::ranges::stable_sort(moments, {}, &Moment::place);
}

int64_t MemoryHeadroom::at(RegionId region, size_t place) {
  const auto found = moments_.find(region);
  if (found == moments_.end()) return peak_;  // nothing is allocated there
  const std::vector<Moment>& moments = found->second;
  const auto [first, last] = std::ranges::equal_range(moments, place, {}, &Moment::place);
  // Of each few moments that follow each other, the walk of a long program keeps the highest and the lowest. Else all that is
  // alive at an op which allocates nothing is what was alive before it.
  const std::ptrdiff_t behind = has_all_ ? 0 : 2, before = has_all_ ? (first == last ? 1 : 0) : 2;
  const auto begin = first - std::min(before, first - moments.begin());
  const auto end = last + std::min(behind, moments.end() - last);
  int64_t most = 0;
  for (auto moment = begin; moment != end; ++moment) most = std::max(most, moment->bytes);
  return peak_ - most;
}

}  // namespace shardwise
