// SPDX-License-Identifier: Apache-2.0
//
// Writes the steps of propagation down as they happen (ir/provenance.h), and counts visits:
//
//   recorder.begin_round(2);
//   recorder.begin_visit();
//   recorder.record(dot, %0, 2, [{"data", ?}, {?}]);            the first step of the visit
//   recorder.begin_priority(1);                                 what follows defers or releases dims of priority 1
#pragma once

#include <cstdint>
#include <utility>

#include "shardwise/ir/provenance.h"

namespace shardwise {

class StepRecorder {
 public:
  explicit StepRecorder(Provenance& provenance) : provenance_(provenance) { begin_round(0); }

  int64_t visits = 0;

  void begin_priority(int64_t priority) {
    priority_ = priority;
    begin_round(PropagationRound::kByPriority);
  }
  void begin_round(int round) {
    round_ = round;
    provenance_.rounds.push_back({.priority = priority_, .round = round_, .first_step = provenance_.steps.size()});
  }

  int round() const { return round_; }

  void begin_visit() {
    ++visits;
    first_ = true;
  }
  void begin_return() { first_ = true; }  // of a value to a result of main: not a visit of an op

  // A build without recording shows its cost (benchmarks/recording.py).
  void record([[maybe_unused]] OpId op, [[maybe_unused]] ValueId value, [[maybe_unused]] size_t tensor,
              [[maybe_unused]] ShardingId after) {
#ifndef SHARDWISE_NO_PROVENANCE
    provenance_.steps.push_back({.op = op,
                                 .value = value,
                                 .after = after,
                                 .tensor = static_cast<uint32_t>(tensor) & PropagationStep::kMaxTensor,
                                 .first = std::exchange(first_, false)});
#endif
  }
  // Records a dim that a priority defers or releases.
  void record_by_priority(ValueId value, size_t result, ShardingId after) {
    begin_return();
    record({}, value, result, after);
  }

 private:
  Provenance& provenance_;
  int64_t priority_ = 0;
  int round_ = 0;
  bool first_ = true;  // of the steps of this visit
};

}  // namespace shardwise
