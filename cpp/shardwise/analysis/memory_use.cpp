// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/memory_use.h"

#include <map>
#include <utility>

namespace shardwise {
namespace {

constexpr size_t kMostMoments = 2048;

// Adds up events, and keeps two moments of each few of them.
class Timeline {
 public:
  explicit Timeline(size_t events) : together_((2 * events + kMostMoments - 1) / kMostMoments) {}

  void add(const LiveMoment& moment) {
    if (count_ == 0 || moment.bytes > highest_.bytes) highest_ = moment, is_highest_last_ = true;
    if (count_ == 0 || moment.bytes < lowest_.bytes) lowest_ = moment, is_highest_last_ = count_ == 0;
    if (++count_ >= together_) close();
  }

  std::vector<LiveMoment> take() {
    close();
    return std::move(moments_);
  }

 private:
  void close() {
    if (count_ == 0) return;
    if (count_ == 1 || highest_.bytes == lowest_.bytes) {
      moments_.push_back(highest_);
    } else {
      moments_.push_back(is_highest_last_ ? lowest_ : highest_);
      moments_.push_back(is_highest_last_ ? highest_ : lowest_);
    }
    count_ = 0;
  }

  const size_t together_;
  size_t count_ = 0;
  LiveMoment highest_, lowest_;
  bool is_highest_last_ = false;
  std::vector<LiveMoment> moments_;
};

}  // namespace

MemoryUse memory_use(std::span<const MemoryEvent> events) {
  MemoryUse use;
  size_t peak = 0;  // the number of events until the peak
  int64_t live = 0;
  Timeline timeline(events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    live += events[i].bytes;
    timeline.add({ValueId{events[i].label}, live});
    // Only a higher sum moves the peak, so that of several equal moments the first one is reported.
    if (live <= use.peak_bytes) continue;
    use.peak_bytes = live;
    use.peak_value = ValueId{events[i].label};
    peak = i + 1;
  }
  use.timeline = timeline.take();
  std::map<uint32_t, size_t> rows;
  for (const MemoryEvent& event : events.first(peak)) {
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
