// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/peak_values.h"

namespace shardwise {

LiveSteps::LiveSteps(const Module& module)
    : chains(elementwise_chains(module, std::vector<DigitSet>(module.value_count(), 0))), ranges(module, chains) {}

}  // namespace shardwise
