// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/loop_rehearsal.h"

#include <algorithm>

namespace shardwise {
namespace {

// For each buffer of the carries: which of them is the first in the same memory, its number of owners, and its strides.
std::vector<int64_t> sharing_of_carries(const Slots& slots, const Loop& loop) {
  std::vector<int64_t> sharing;
  std::vector<const void*> known;
  const auto add = [&](const NdArray& array) {
    const auto found = std::find(known.begin(), known.end(), array.owner().get());
    sharing.push_back(found - known.begin());
    if (found == known.end()) known.push_back(array.owner().get());
    sharing.push_back(array.owner().use_count());
    sharing.insert(sharing.end(), array.strides().begin(), array.strides().end());
  };
  for (const Move& carry : loop.enter) {
    const Shards& shards = slots[carry.to];
    if (shards.is_stacked()) add(shards.stacked());
    for (int64_t i = 0; !shards.is_stacked() && i < shards.count(); ++i) add(shards[i]);
  }
  return sharing;
}

}  // namespace

void rehearse_trips(const Slots& slots, const Loop& loop, const std::function<void(int64_t trip)>& run_trip) {
  // The first trips enter with buffers of others. An initial buffer may pass through all carries before it is gone:
  // (a, b, c) -> (b, c, new).
  const int64_t most = std::min<int64_t>(loop.trips.value_or(INT64_MAX), std::ssize(loop.enter) + 2);
  std::vector<int64_t> before;
  for (int64_t trip = 0; trip < most; ++trip) {
    run_trip(trip);
    std::vector<int64_t> now = sharing_of_carries(slots, loop);
    // Once a trip ends with carries that share buffers as they did before it, all later trips allocate the same.
    if (now == before) break;
    before = std::move(now);
  }
}

}  // namespace shardwise
