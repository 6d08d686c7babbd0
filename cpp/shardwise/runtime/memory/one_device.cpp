// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/memory/one_device.h"

#include <utility>

#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

Shards allocated(DType dtype, Dims shape) { return {AxisList(), pooled_empty(dtype, std::move(shape))}; }

}  // namespace

// Shapes are enough: there are no other shards, and nothing is computed.
Shards OneDevice::run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.kind == CollectiveKind::kAxisIndex) return allocated(DType::kI32, {});
  Dims shape = operands[0].local_shape();
  for (size_t d = 0; d < call.dims.size(); ++d) {
    const int64_t parts = product(call.dims[d]);
    shape[d] = call.kind == CollectiveKind::kAllGather ? shape[d] * parts : shape[d] / parts;
  }
  for (const AllToAllMove& move : call.moves) {
    shape[static_cast<size_t>(move.to_dim)] /= product(move.axes);
    shape[static_cast<size_t>(move.from_dim)] *= product(move.axes);
  }
  if (call.kind == CollectiveKind::kExchange) {
    shape.clear();
    for (const ExchangeTarget& to : call.exchange.to) shape.push_back(to.rows);
  }
  return allocated(operands[0].dtype(), std::move(shape));
}

}  // namespace shardwise
