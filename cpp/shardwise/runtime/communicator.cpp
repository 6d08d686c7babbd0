// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/communicator.h"

namespace shardwise {

// All devices are in this process.
Shards Communicator::on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) {
  std::vector<Shards> ordered;
  for (const Shards& operand : operands) ordered.push_back(order.in_other_order(operand));
  const Shards result = collective(*this, ordered);
  return result.axes().empty() ? result : order.in_main_order(result);
}

}  // namespace shardwise
