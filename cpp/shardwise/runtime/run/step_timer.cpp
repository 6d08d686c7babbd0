// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/step_timer.h"

namespace shardwise {

void StepTimer::record(const Step& step) {
  const auto nanoseconds = [](auto duration) {
    return static_cast<int64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count());
  };
  // First, because what follows is no part of the step.
  const Clock::time_point end = Clock::now();
  const OpView op(module_, step.op);
  const auto* chain = std::get_if<FusedChain>(&step.work);
  StepTiming row{.op = op.name(), .id = step.op, .loc = op.loc(), .fused_ops = chain == nullptr ? 1 : chain->ops};
  row.duration_ns = nanoseconds(end - begin_);
  row.start_ns = nanoseconds(begin_ - start_);
  row.shards = product(step.axes);
  for (uint32_t slot : step.outputs) row.bytes += bytes_of(slots_[slot]);
  rows_->push_back(row);
}

}  // namespace shardwise
