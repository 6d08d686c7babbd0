// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/collective_steps.h"

#include <algorithm>

namespace shardwise {

void CollectiveSteps::run(const Step& step, const CollectiveCall& collective) {
  if (collective.together > 1) reduce_together({&step, collective.together});
  if (!reduced_.empty()) {
    slots_[step.outputs[0]] = reduced_.back().along(step.axes);
    reduced_.pop_back();
    return;
  }
  std::vector<Shards> operands;
  operands.reserve(step.inputs.size());
  for (const uint32_t slot : step.inputs) operands.push_back(slots_[slot]);
  // Reports and counters name the op whose bytes travel.
  communicator_.begin(step.op);
  slots_[step.outputs[0]] = communicator_.run(collective, operands).along(step.axes);
}

void CollectiveSteps::reduce_together(std::span<const Step> batch) {
  std::vector<Shards> operands;
  std::vector<Reducer> reducers;
  for (const Step& step : batch) {
    operands.push_back(slots_[step.inputs[0]]);
    reducers.push_back(std::get<CollectiveCall>(step.work).reducer);
  }
  communicator_.begin(batch[0].op);
  reduced_ = communicator_.all_reduce_together(operands, std::get<CollectiveCall>(batch[0].work).axes, reducers);
  // The steps of the batch follow one by one, and each takes the last of these.
  std::ranges::reverse(reduced_);
}

}  // namespace shardwise
