// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/memory_use.h"

#include <map>

namespace shardwise {

MemoryUse memory_use(std::span<const AllocationLog::Event> events) {
  MemoryUse use;
  size_t peak = 0;  // the number of events until the peak
  int64_t live = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    live += events[i].bytes;
    // Only a higher sum moves the peak, so that of several equal moments the first one is reported.
    if (live <= use.peak_bytes) continue;
    use.peak_bytes = live;
    peak = i + 1;
  }
  std::map<uint32_t, size_t> rows;
  for (const AllocationLog::Event& event : events.first(peak)) {
    // A value may have several buffers, such as the copies of its shards, and some of them are freed by then.
    const auto [row, is_new] = rows.emplace(event.label, use.at_peak.size());
    if (is_new) use.at_peak.push_back({ValueId{event.label}, 0});
    use.at_peak[row->second].bytes += event.bytes;
  }
  // All that was allocated under this label is freed again at the peak.
  std::erase_if(use.at_peak, [](const LiveBuffers& buffers) { return buffers.bytes == 0; });
  return use;
}

}  // namespace shardwise
