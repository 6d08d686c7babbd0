// SPDX-License-Identifier: Apache-2.0
//
// Loops that a rehearsal (memory/allocation_log.h) has run before. Each trip of a loop runs the loop in its body again;
// as a rehearsal needs two trips at least, a nest of depth d would be rehearsed 2^d times.
//
//   while(%x = %0) {            trip 1: %x is the caller's buffer
//     while(%y = %x) {…}            rehearsed
//   }                           trip 2: %x is a buffer of trip 1
//     while(%y = %x) {…}            rehearsed: another state, since nobody else holds %x
//                               trip 3: shares as trip 2
//     while(%y = %x) {…}            repeated: the highest moment of its allocations, and its results
//
// The state of a loop is how the arrays in the slots of its step share buffers, their strides, and which buffers others
// hold. As for the trips of one loop (loop_rehearsal.h), values do not count.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "shardwise/runtime/memory/allocation_log.h"
#include "shardwise/runtime/run/slots.h"

namespace shardwise {

class RehearsedLoops {
 public:
  // Rehearses the loop of the step, or repeats what it did from this state before.
  void run(const Step& step, Slots& slots, const std::function<void()>& rehearse);

 private:
  using State = std::vector<int64_t>;

  // A buffer that is alive at the end.
  struct Buffer {
    uint32_t label = 0;
    int64_t bytes = 0;
    std::vector<std::byte> data;  // if it is small: starts of slices decide what is a view
  };
  struct Array {
    enum class Owner { kNone, kEntry, kNew, kOther };
    Owner owner = Owner::kNone;
    size_t number = 0;  // of the buffer: among those of the state, or among the new ones
    ptrdiff_t offset = 0;
    NdArray like;  // dtype, shape and strides; of kOther, the array itself
  };
  struct Slot {
    uint32_t slot = 0;
    AxisList axes;
    bool is_stacked = true;
    std::vector<Array> arrays;
  };
  struct Outcome {
    std::vector<AllocationLog::Event> highest;  // the sums by label at the moment of most bytes, those below zero first
    std::vector<Buffer> made;
    std::vector<Slot> slots;
  };

  static std::optional<Outcome> outcome_of(const std::vector<uint32_t>& touched, const Slots& slots, size_t begin,
                                           const std::vector<const void*>& entry);
  static void repeat(const Outcome& outcome, Slots& slots, const std::vector<uint32_t>& touched);

  std::map<std::pair<const Step*, State>, Outcome> known_;
};

}  // namespace shardwise
