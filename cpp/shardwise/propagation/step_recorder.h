// SPDX-License-Identifier: Apache-2.0
//
// Writes the steps of propagation down as they happen (ir/provenance.h), and counts visits:
//
//   recorder.round = 2;
//   recorder.begin_visit();
//   recorder.record(dot, %0, 2, none, [{"data", ?}, {?}]);      the first step of the visit
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shardwise/ir/provenance.h"

namespace shardwise {

class StepRecorder {
 public:
  explicit StepRecorder(std::vector<PropagationStep>& steps) : steps_(steps) {}

  int round = 0;
  int64_t priority = 0;  // a user's
  int64_t visits = 0;

  std::vector<PropagationStep>& steps() { return steps_; }

  void begin_visit() {
    ++visits;
    first_ = true;
  }
  void begin_return() { first_ = true; }  // of a value to a result of main: not a visit of an op

  // A build without recording shows what it costs (benchmarks/recording.py).
  void record([[maybe_unused]] OpId op, [[maybe_unused]] ValueId value, [[maybe_unused]] size_t tensor,
              [[maybe_unused]] ShardingId before, [[maybe_unused]] ShardingId after) {
#ifndef SHARDWISE_NO_PROVENANCE
    steps_.push_back({.op = op,
                      .value = value,
                      .tensor = static_cast<uint32_t>(tensor),
                      .before = before,
                      .after = after,
                      .round = static_cast<uint8_t>(round),
                      .first = std::exchange(first_, false),
                      .priority = static_cast<uint16_t>(std::min<int64_t>(priority, UINT16_MAX))});
#endif
  }

 private:
  std::vector<PropagationStep>& steps_;
  bool first_ = true;  // of the steps of this visit
};

}  // namespace shardwise
