// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/counting_communicator.h"

#include <algorithm>

#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

// The elements of part `position` of `count` equal parts, the last of which may be short.
int64_t share_of(int64_t elements, int64_t count, int64_t position) {
  // 10 elements in 4 parts: 3, 3, 3, 1.
  const int64_t part = ceil_div(elements, count);
  return std::clamp<int64_t>(elements - position * part, 0, part);
}

// The dims of the operands and of the tile of one device, one index at a time.
struct TileCounter {
  // The meshes of the result and of the operands, and the logical index of the device in each.
  const Mesh& mesh;
  const Mesh& from_mesh;
  const ExchangeMap& map;
  int64_t device;
  int64_t from_device;

  // The elements of operand k that the device needs, or those of them that it holds.
  int64_t count(size_t k, bool held) const {
    int64_t elements = 1;
    for (size_t d = 0; d < map.to.size(); ++d) {
      const ExchangeTarget& to = map.to[d];
      const int64_t first = shard_index(mesh, to.axes, device) * to.step;
      int64_t rows = 0;
      // Dims are independent, so the elements of a box are the product of its rows. The arithmetic of mesh/exchange.cpp
      // is avoided on purpose: this is the check of what it predicts.
      for (int64_t t = first; t < std::min(first + to.rows, to.size); ++t) rows += is_read(map.from[k][d], t, held);
      elements *= rows;
    }
    return elements;
  }

  bool is_read(const ExchangeSource& from, int64_t t, bool held) const {
    if (t < from.begin || t >= from.end) return false;
    const int64_t scaled = from.scale * t + from.offset;
    // An index between two elements of a dilated operand is filled, not received.
    if (scaled < 0 || scaled % from.holes != 0 || scaled / from.holes >= from.size) return false;
    return !held || scaled / from.holes / from.block == shard_index(from_mesh, from.axes, from_device);
  }
};

}  // namespace

void CountingCommunicator::begin(OpId op) {
  op_ = op;
  devices_.begin(op);
}

Shards CountingCommunicator::run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) {
  if (call.kind != CollectiveKind::kAxisIndex) {
    std::vector<int64_t>& bytes = received_[op_];
    bytes.resize(static_cast<size_t>(mesh_->device_count()));
    for (size_t device = 0; device < bytes.size(); ++device) {
      // Added up, because the op may run in each trip of a loop.
      const int64_t elements = elements_received(call, operands[0], static_cast<int64_t>(device));
      bytes[device] += elements * item_size(operands[0].dtype());
    }
  }
  return devices_.run_on_its_mesh(call, operands);
}

int64_t CountingCommunicator::elements_received(const CollectiveCall& call, const Shards& operand,
                                                int64_t device) const {
  const int64_t elements = element_count(operand.local_shape());
  switch (call.kind) {
    case CollectiveKind::kAllReduce:
    case CollectiveKind::kReduceScatter: {
      // Devices that keep the same part complete it like an all-reduce, which keeps everything.
      const AxisList kept_by = joined(call.dims), shared_by = difference(call.axes, kept_by);
      const int64_t kept = elements / product(kept_by), group = product(call.axes);
      const int64_t own = share_of(kept, product(shared_by), shard_index(*mesh_, shared_by, device));
      return (group - 1) * own + kept - own;  // the addends of its part, then the other parts
    }
    case CollectiveKind::kAllGather: return (product(joined(call.dims)) - 1) * elements;
    case CollectiveKind::kAllToAll: {
      int64_t group = 1;
      for (const AllToAllMove& move : call.moves) group *= product(move.axes);
      // A device splits its shard into as many parts as the group has devices and keeps one of them.
      return elements / group * (group - 1);
    }
    case CollectiveKind::kCollectivePermute: return elements_permuted(call.permute, elements, device);
    case CollectiveKind::kExchange: return elements_exchanged(call, device);
    default: return 0;
  }
}

int64_t CountingCommunicator::elements_permuted(const PermuteAttrs& permute, int64_t elements, int64_t device) const {
  const auto index_along = [&](AxisSpan axes) { return shard_index(*mesh_, axes, device); };
  if (permute.axes.empty()) {
    const PermuteAttrs swap = completed(permute);
    // It sends to itself if it is in the same place along both.
    return index_along(swap.from) == index_along(swap.to) ? 0 : elements;
  }
  const int64_t index = index_along(permute.axes);
  // A full turn sends to itself, and devices without a sender get zeros without a message.
  return sender_of(permute, index).value_or(index) == index ? 0 : elements;
}

int64_t CountingCommunicator::elements_exchanged(const CollectiveCall& call, int64_t device) const {
  const ExchangeMap& map = call.exchange;
  const Mesh& to = call.is_across_meshes() ? *map.to_mesh : *mesh_;
  const Mesh& from = call.is_across_meshes() ? *map.from_mesh : *mesh_;
  const int64_t id = mesh_->device_at(device);
  const TileCounter tile{to, from, map, to.logical_index(id), from.logical_index(id)};
  int64_t elements = 0;
  for (size_t k = 0; k < map.from.size(); ++k) elements += tile.count(k, false) - tile.count(k, true);
  return elements;
}

// Counts along the axes of the other mesh, for the devices in the order of this one.
Shards CountingCommunicator::on_mesh(const DeviceOrder& order, std::span<const Shards> operands,
                                     const Collective& collective) {
  return devices_.on_mesh(order, operands, [&](Communicator& devices, std::span<const Shards> ordered) {
    // A counter of its own, whose devices are numbered by the other mesh; its bytes are added in the order of this one.
    CountingCommunicator counter(devices, order.other);
    counter.op_ = op_;
    Shards result = collective(counter, ordered);
    for (const auto& [op, received] : counter.received_) {
      std::vector<int64_t>& bytes = received_[op];
      bytes.resize(received.size());
      for (size_t i = 0; i < received.size(); ++i) bytes[static_cast<size_t>(order.main_index[i])] += received[i];
    }
    return result;
  });
}

}  // namespace shardwise
