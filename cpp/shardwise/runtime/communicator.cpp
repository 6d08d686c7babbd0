// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/communicator.h"

#include "shardwise/runtime/exchange_across_meshes.h"

namespace shardwise {

// All devices are in this process.
Shards Communicator::on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) {
  std::vector<Shards> ordered;
  for (const Shards& operand : operands) ordered.push_back(order.in_other_order(operand));
  const Shards result = collective(*this, ordered);
  return result.axes().empty() ? result : order.in_main_order(result);
}

Shards Communicator::exchange_across_meshes(const Mesh& main, std::span<const Shards> operands,
                                            const ExchangeMap& map) {
  return exchanged_across_meshes(operands, map, main, {}, nullptr);
}

}  // namespace shardwise
