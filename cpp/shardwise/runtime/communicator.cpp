// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/communicator.h"

#include "shardwise/base/error.h"

namespace shardwise {

Shards Communicator::run(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.is_reduced) {
    // Nothing is left to add (early_reduction.h), but a reduce_scatter must still give each device its part.
    return call.kind == CollectiveKind::kAllReduce ? operands[0] : own_parts(operands[0], call.dims);
  }
  if (call.order == nullptr || call.is_across_meshes()) return run_on_its_mesh(call, operands);
  return on_mesh(*call.order, operands, [&](Communicator& devices, std::span<const Shards> ordered) {
    return devices.run_on_its_mesh(call, ordered);
  });
}

std::vector<Shards> Communicator::all_reduce_together(std::span<const Shards> operands, AxisSpan axes,
                                                      std::span<const Reducer> reducers) {
  CollectiveCall call{.kind = CollectiveKind::kAllReduce, .axes = {axes.begin(), axes.end()}};
  std::vector<Shards> results;
  for (size_t i = 0; i < operands.size(); ++i) {
    call.reducer = reducers[i];
    results.push_back(run_on_its_mesh(call, operands.subspan(i, 1)));
  }
  return results;
}

// All devices are in this process.
Shards Communicator::on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) {
  std::vector<Shards> ordered;
  for (const Shards& operand : operands) ordered.push_back(order.in_other_order(operand));
  return order.in_main_order(collective(*this, ordered));
}

Shards DeviceCommunicator::run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.kind == CollectiveKind::kAxisIndex) return axis_index(call.axes);
  const Shards& operand = operands[0];
  const PermuteAttrs& route = call.permute;
  switch (call.kind) {
    case CollectiveKind::kAllReduce: return all_reduce(operand, call.axes, call.reducer);
    case CollectiveKind::kAllGather: return all_gather(operand, call.dims);
    case CollectiveKind::kReduceScatter: return reduce_scatter(operand, call.axes, call.dims, call.reducer);
    case CollectiveKind::kAllToAll: return all_to_all(operand, call.moves);
    case CollectiveKind::kCollectivePermute:
      if (route.axes.empty()) return permute(operand, route.from, route.to);
      if (route.reducer == Reducer::kNone) return shift(operand, route.axes, route.shift, route.wrap);
      return chain(operand, route.axes, route.shift, route.reducer);
    case CollectiveKind::kExchange: {
      const Shards* fill = call.has_fill ? &operands.back() : nullptr;
      const Mesh* main = call.is_across_meshes() ? call.order->main.get() : nullptr;
      return exchange(operands.first(call.exchange.from.size()), fill, call.exchange, main);
    }
    case CollectiveKind::kAxisIndex:
    case CollectiveKind::kAllSlice:
    case CollectiveKind::kToUnreduced:
    case CollectiveKind::kNone: break;
  }
  check_internal(false, "run: a local collective");
  return operand;
}

}  // namespace shardwise
