// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/counting_communicator.h"

#include <algorithm>

#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

int64_t elements_of(const Shards& shards) { return element_count(shards.local_shape()); }

// The elements of part `position` of `count` equal parts, the last of which may be short.
int64_t part_of(int64_t elements, int64_t count, int64_t position) {
  // 10 elements in 4 parts: 3, 3, 3, 1.
  const int64_t part = ceil_div(elements, count);
  return std::clamp<int64_t>(elements - position * part, 0, part);
}

AxisList all_of(std::span<const AxisList> lists) {
  AxisList all;
  for (const AxisList& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
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

template <class Count>
void CountingCommunicator::add(Count&& elements_of, DType dtype) {
  std::vector<int64_t>& bytes = received_[op_];
  bytes.resize(static_cast<size_t>(mesh_->device_count()));
  for (size_t device = 0; device < bytes.size(); ++device) {
    // Added up, because the op may run in each trip of a loop.
    bytes[device] += elements_of(static_cast<int64_t>(device)) * item_size(dtype);
  }
}

Shards CountingCommunicator::all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) {
  const int64_t elements = elements_of(operand), group = product(axes);
  add(
      [&](int64_t device) {
        const int64_t own = part_of(elements, group, shard_index(*mesh_, axes, device));
        return (group - 1) * own + elements - own;  // the addends of its part, then the other parts
      },
      operand.dtype());
  return devices_.all_reduce(operand, axes, reducer);
}

Shards CountingCommunicator::all_gather(const Shards& operand, std::span<const AxisList> gather) {
  const int64_t elements = elements_of(operand), group = product(all_of(gather));
  add([&](int64_t) { return (group - 1) * elements; }, operand.dtype());
  return devices_.all_gather(operand, gather);
}

// Devices that keep the same part complete it like an all-reduce.
Shards CountingCommunicator::reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                                            Reducer reducer) {
  const AxisList kept_by = all_of(scatter), shared_by = difference(axes, kept_by);
  const int64_t kept = elements_of(operand) / product(kept_by), group = product(axes);
  add(
      [&](int64_t device) {
        const int64_t own = part_of(kept, product(shared_by), shard_index(*mesh_, shared_by, device));
        return (group - 1) * own + kept - own;
      },
      operand.dtype());
  return devices_.reduce_scatter(operand, axes, scatter, reducer);
}

Shards CountingCommunicator::all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) {
  int64_t group = 1;
  for (const AllToAllMove& move : moves) group *= product(move.axes);
  // A device splits its shard into as many parts as the group has devices and keeps one of them.
  add([&](int64_t) { return elements_of(operand) / group * (group - 1); }, operand.dtype());
  return devices_.all_to_all(operand, moves);
}

Shards CountingCommunicator::permute(const Shards& operand, AxisSpan from, AxisSpan to) {
  AxisList sources(from.begin(), from.end()), targets(to.begin(), to.end());
  const AxisList only_to = difference(to, from), only_from = difference(from, to);
  sources.insert(sources.end(), only_to.begin(), only_to.end());
  targets.insert(targets.end(), only_from.begin(), only_from.end());
  add(
      [&](int64_t device) {  // it sends to itself if it is in the same place along both
        return shard_index(*mesh_, sources, device) == shard_index(*mesh_, targets, device) ? 0 : elements_of(operand);
      },
      operand.dtype());
  return devices_.permute(operand, from, to);
}

Shards CountingCommunicator::shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) {
  const int64_t count = product(axes);
  add(
      [&](int64_t device) {
        const int64_t sender = shard_index(*mesh_, axes, device) - offset;
        // A full turn sends to itself, and devices past the end receive zeros without a message.
        if (wrap ? offset % count == 0 : offset == 0 || sender < 0 || sender >= count) return int64_t{0};
        return elements_of(operand);
      },
      operand.dtype());
  return devices_.shift(operand, axes, offset, wrap);
}

Shards CountingCommunicator::chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) {
  const int64_t end = step > 0 ? 0 : product(axes) - 1;
  add([&](int64_t device) { return shard_index(*mesh_, axes, device) == end ? int64_t{0} : elements_of(operand); },
      operand.dtype());
  return devices_.chain(operand, axes, step, reducer);
}

Shards CountingCommunicator::exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                                      const Mesh* main) {
  const Mesh& to = main == nullptr ? *mesh_ : *map.to_mesh;
  const Mesh& from = main == nullptr ? *mesh_ : *map.from_mesh;
  add(
      [&](int64_t device) {
        const int64_t id = mesh_->device_at(device);
        const TileCounter tile{to, from, map, to.logical_index(id), from.logical_index(id)};
        int64_t elements = 0;
        for (size_t k = 0; k < map.from.size(); ++k) elements += tile.count(k, false) - tile.count(k, true);
        return elements;
      },
      operands[0].dtype());
  return devices_.exchange(operands, fill, map, main);
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
