// SPDX-License-Identifier: Apache-2.0
//
// A rehearsal of a run: every buffer is allocated and freed, and only small ones are computed.
//
//   AllocationLog log;                          // from here on, buffers of this thread have addresses without memory
//   log.set_label(3);
//   NdArray a = pooled_empty(kF32, {1 << 40});  // reads give zeros; whoever writes asks leaves_out() first
//   a = {};
//   log.events();                               // {3, 4 TiB}, {3, -4 TiB}
//
// Small data is real, because the starts of slices decide which shards are views of one stack. A log belongs to one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shardwise/analysis/memory_use.h"

namespace shardwise {

class AllocationLog {
 public:
  using Event = MemoryEvent;

  // A buffer that is not freed yet.
  struct Buffer {
    uint32_t label;
    int64_t bytes;
    size_t event;  // its allocation, as a place in `events`
  };

  AllocationLog();
  ~AllocationLog();
  AllocationLog(const AllocationLog&) = delete;
  AllocationLog& operator=(const AllocationLog&) = delete;

  static AllocationLog* current();  // of this thread, or null

  void set_label(uint32_t label) { label_ = label; }  // of the allocations that follow
  const std::vector<Event>& events() const { return state_->events; }
  const Buffer* find(const void* memory) const;  // null for memory that is not of this log
  // Stands for buffers that an earlier rehearsal of the same steps allocated and freed.
  void repeat(Event event) { state_->events.push_back(event); }

  // OutOfMemoryError where the address space ends.
  std::shared_ptr<void> allocate(int64_t bytes);

 private:
  struct State {
    std::vector<Event> events;
    std::unordered_map<const void*, Buffer> buffers;
  };

  std::shared_ptr<State> state_;  // shared with the buffers, which may outlive the log
  uint32_t label_ = 0;
};

inline bool is_rehearsal() { return AllocationLog::current() != nullptr; }

// Whether a rehearsal runs here, and does not compute `bytes` bytes of one shard.
inline bool leaves_out(int64_t bytes) { return bytes > 256 && is_rehearsal(); }

}  // namespace shardwise
