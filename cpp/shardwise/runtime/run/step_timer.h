// SPDX-License-Identifier: Apache-2.0
//
// Records when each step of a traced run began, how long it took, and the bytes of its results.
//
//   timer.begin();
//   …                      the step
//   timer.end(step);       StepTiming{stablehlo.dot_general, start_ns = 1200, duration_ns = 5300, …}
//
// In a run without a trace it does nothing, and asks no clock.
#pragma once

#include <chrono>

#include "shardwise/runtime/run/slots.h"
#include "shardwise/runtime/run_options.h"

namespace shardwise {

class StepTimer {
 public:
  StepTimer(const Module& module, const Slots& slots, std::vector<StepTiming>* rows)
      : module_(module), slots_(slots), rows_(rows), start_(Clock::now()) {}

  void begin() {
    if (rows_ != nullptr) begin_ = Clock::now();
  }
  void end(const Step& step) {
    if (rows_ != nullptr) record(step);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void record(const Step& step);

  const Module& module_;
  const Slots& slots_;
  std::vector<StepTiming>* rows_;
  Clock::time_point start_;
  Clock::time_point begin_;  // of the current step
};

}  // namespace shardwise
