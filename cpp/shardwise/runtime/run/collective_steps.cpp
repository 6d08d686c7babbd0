// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/run/collective_steps.h"

#include <algorithm>

namespace shardwise {

void CollectiveSteps::run(const Step& step, const CollectiveCall& collective) {
  if (collective.together > 1) reduce_together({&step, collective.together});
  if (!reduced_.empty()) {
    for (const uint32_t slot : step.outputs) {
      slots_[slot] = reduced_.back().along(slots_.axes(slot));
      reduced_.pop_back();
    }
    return;
  }
  std::vector<Shards> operands;
  operands.reserve(step.inputs.size());
  for (const uint32_t slot : step.inputs) operands.push_back(slots_[slot]);
  // Reports and counters name the op whose bytes travel.
  communicator_.begin(step.op);
  const std::vector<Shards> results = communicator_.run(collective, operands);
  // What varies along `x` before a reduction along `y` does so afterwards, and its neighbors may not.
  for (size_t i = 0; i < results.size(); ++i) {
    slots_[step.outputs[i]] = results[i].along(slots_.axes(step.outputs[i]));
  }
}

void CollectiveSteps::reduce_together(std::span<const Step> batch) {
  std::vector<Shards> operands;
  std::vector<Reducer> reducers;
  for (const Step& step : batch) {
    for (const uint32_t slot : step.inputs) operands.push_back(slots_[slot]);
    reducers.resize(operands.size(), std::get<CollectiveCall>(step.work).reducer);
  }
  communicator_.begin(batch[0].op);
  reduced_ = communicator_.all_reduce_together(operands, std::get<CollectiveCall>(batch[0].work).axes, reducers);
  // The steps of the batch follow one by one, and each takes the last of these.
  std::ranges::reverse(reduced_);
}

}  // namespace shardwise
