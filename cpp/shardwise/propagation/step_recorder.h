// SPDX-License-Identifier: Apache-2.0
//
// Writes the steps of propagation down as they happen (ir/provenance.h), and counts visits:
//
//   recorder.round = 2;
//   recorder.begin_visit();
//   recorder.record(dot, %0, 2, none, [{"data", ?}, {?}]);      the first step of the visit
//   recorder.begin_turn(1);                                      what follows is in the turn of priority 1
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "shardwise/ir/provenance.h"

namespace shardwise {

class StepRecorder {
 public:
  explicit StepRecorder(Provenance& provenance) : provenance_(provenance) {}

  int round = 0;
  int64_t visits = 0;

  void begin_turn(int64_t priority) {
    provenance_.priorities.push_back(priority);
    turn_ = provenance_.priorities.size() - 1;
  }

  void begin_visit() {
    ++visits;
    first_ = true;
  }
  void begin_return() { first_ = true; }  // of a value to a result of main: not a visit of an op

  // A build without recording shows its cost (benchmarks/recording.py).
  void record([[maybe_unused]] OpId op, [[maybe_unused]] ValueId value, [[maybe_unused]] size_t tensor,
              [[maybe_unused]] ShardingId before, [[maybe_unused]] ShardingId after) {
#ifndef SHARDWISE_NO_PROVENANCE
    provenance_.steps.push_back({.op = op,
                                 .value = value,
                                 .tensor = static_cast<uint32_t>(tensor),
                                 .before = before,
                                 .after = after,
                                 .round = static_cast<uint8_t>(round),
                                 .first = std::exchange(first_, false),
                                 .turn = static_cast<uint16_t>(std::min<size_t>(turn_, UINT16_MAX))});
#endif
  }
  // Records a dim that a priority defers or releases.
  void record_by_priority(ValueId value, size_t result, ShardingId before, ShardingId after) {
    const int in_round = std::exchange(round, PropagationStep::kByPriority);
    begin_return();
    record({}, value, result, before, after);
    round = in_round;
  }

 private:
  Provenance& provenance_;
  size_t turn_ = 0;
  bool first_ = true;  // of the steps of this visit
};

}  // namespace shardwise
