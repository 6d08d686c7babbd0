// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/communicator.h"

#include "shardwise/base/error.h"

namespace shardwise {

std::vector<Shards> Communicator::run(const CollectiveCall& call, std::span<const Shards> operands) {
  if (operands.size() <= 1 || !may_combine(call.kind)) {
    if (!call.is_reduced(0)) return {run_one(call, operands)};
  }
  std::vector<Shards> results(operands.size()), left;
  for (size_t i = 0; i < operands.size(); ++i) {
    // Nothing is left to add (early_reduction.h), but a reduce_scatter must still give each device its part.
    if (!call.is_reduced(i)) {
      left.push_back(operands[i]);
    } else {
      results[i] = call.kind == CollectiveKind::kAllReduce ? operands[i] : own_parts(operands[i], call.dims);
    }
  }
  std::vector<Shards> made;
  if (call.order == nullptr && left.size() > 1) {
    made = run_together(call, left);
  } else {
    for (const Shards& operand : left) made.push_back(run_one(call, {&operand, 1}));
  }
  for (size_t i = operands.size(); i-- > 0;) {
    if (call.is_reduced(i)) continue;
    results[i] = std::move(made.back());
    made.pop_back();
  }
  return results;
}

Shards Communicator::run_one(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.order == nullptr || call.is_across_meshes()) return run_on_its_mesh(call, operands);
  return on_mesh(*call.order, operands, [&](Communicator& devices, std::span<const Shards> ordered) {
    return devices.run_on_its_mesh(call, ordered);
  });
}

std::vector<Shards> Communicator::run_together(const CollectiveCall& call, std::span<const Shards> operands) {
  std::vector<Shards> results;
  for (const Shards& operand : operands) results.push_back(run_on_its_mesh(call, {&operand, 1}));
  return results;
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
