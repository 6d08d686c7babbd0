// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/exchange_across_meshes.h"

#include <algorithm>
#include <map>

#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/tiling.h"
#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/runtime/array_view.h"
#include "shardwise/runtime/device_order.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// A device of the main mesh: its process, and its place among the devices of that process.
struct Place {
  int64_t process = 0, index = 0;
};

// Elements of one shard that go to one tile.
struct Box {
  size_t operand = 0;
  Place sender;
  std::vector<ExchangePiece> dims;
};

Dims counts_of(const Box& box) {
  Dims counts;
  // Also the shape of the part in a message: only these rows travel, without gaps.
  for (const ExchangePiece& piece : box.dims) counts.push_back(piece.count);
  return counts;
}

// Boxes one after the other; the memory is that of the arrays.
struct Message {
  Message(DType dtype, const std::vector<Box>& boxes) {
    int64_t bytes = 0;
    for (const Box& box : boxes) bytes += element_count(counts_of(box)) * item_size(dtype);
    memory = pooled_empty(DType::kU8, {bytes});
    std::byte* at = memory.data();
    for (const Box& box : boxes) {
      Dims shape = counts_of(box);
      Dims strides = row_major_strides(shape, item_size(dtype));
      parts.emplace_back(dtype, std::move(shape), std::move(strides), at, memory.owner());
      at += parts.back().nbytes();
    }
  }

  NdArray memory;
  std::vector<NdArray> parts;
};

class Exchange {
 public:
  Exchange(std::span<const Shards> operands, const ExchangeMap& map, const Mesh& main, const DeviceSet& devices)
      : map_(map), main_(main), devices_(devices), axes_(devices.free(all_axes(main))) {
    for (const Shards& operand : operands) operands_.push_back(operand.along(axes_));
    places_.resize(static_cast<size_t>(main.device_count()));
    for (int64_t process = 0; process < product(devices.pinned); ++process) {
      const DeviceSet its{.pinned = devices.pinned, .position = process};
      for (int64_t i = 0; i < product(axes_); ++i) {
        // The inverse of logical_index_of for all processes, because each works out what the others send and lack.
        places_[static_cast<size_t>(logical_index_of(main, its, axes_, i))] = {process, i};
      }
    }
    find_holders();
    for (const ExchangeTarget& to : map.to) shape_.push_back(to.rows);
  }

  Shards run(Transport* transport) {
    std::vector<std::vector<Box>> tiles(static_cast<size_t>(product(axes_)));
    // All processes visit all devices in one order, so that sender and receiver list the same boxes.
    std::map<int64_t, std::vector<Box>> sent, awaited;  // by process
    for (int64_t device = 0; device < main_.device_count(); ++device) {
      const Place receiver = places_[static_cast<size_t>(device)];
      const bool is_own = receiver.process == devices_.position;
      std::vector<Box> boxes = boxes_of(device);
      for (const Box& box : boxes) {
        if (is_own && box.sender.process != devices_.position) awaited[box.sender.process].push_back(box);
        if (!is_own && box.sender.process == devices_.position) sent[receiver.process].push_back(box);
      }
      if (is_own) tiles[static_cast<size_t>(receiver.index)] = std::move(boxes);
    }
    if (transport != nullptr) send(*transport, sent, awaited);
    return is_view(tiles) ? views(tiles) : copies(tiles);
  }

 private:
  // The devices that hold each shard of each operand.
  void find_holders() {
    for (const std::vector<ExchangeSource>& from : map_.from) {
      AxisList axes;
      for (const ExchangeSource& dim : from) axes.insert(axes.end(), dim.axes.begin(), dim.axes.end());
      std::vector<std::vector<int64_t>>& holders = holders_.emplace_back(static_cast<size_t>(product(axes)));
      for (int64_t device = 0; device < main_.device_count(); ++device) {
        const int64_t index = device_in(main_, *map_.from_mesh, device);
        // Replicas: all of these have the shard, and sender_to chooses one for each receiver.
        holders[static_cast<size_t>(shard_index(*map_.from_mesh, axes, index))].push_back(device);
      }
    }
  }

  std::vector<Box> boxes_of(int64_t device) const {
    std::vector<Box> boxes;
    const int64_t index = device_in(main_, *map_.to_mesh, device);
    for (size_t k = 0; k < map_.from.size(); ++k) {
      const std::vector<ExchangeSource>& from = map_.from[k];
      std::vector<std::vector<std::pair<int64_t, ExchangePiece>>> pieces(
          from.size());  // by dim; with the shard's number
      Dims counts;
      for (size_t d = 0; d < from.size(); ++d) {
        const int64_t tile = shard_index(*map_.to_mesh, map_.to[d].axes, index);
        const auto [first, last] = senders(map_.to[d], from[d], tile);
        for (int64_t shard = first; shard <= last; ++shard) {
          const ExchangePiece piece = piece_between(map_.to[d], from[d], tile, shard);
          if (piece.count > 0) pieces[d].emplace_back(shard, piece);
        }
        counts.push_back(std::ssize(pieces[d]));
      }
      // A dim without rows makes the box empty, and next_index needs counts above 0.
      if (std::ranges::find(counts, 0) != counts.end()) continue;
      Dims at(from.size(), 0);
      do {
        Box box{.operand = k, .sender = {}, .dims = {}};
        int64_t shard = 0;
        for (size_t d = 0; d < from.size(); ++d) {
          const auto& [number, piece] = pieces[d][static_cast<size_t>(at[d])];
          // The number along the axes of all dims in order, as find_holders has joined them.
          shard = shard * product(from[d].axes) + number;
          box.dims.push_back(piece);
        }
        box.sender = sender_to(device, holders_[k][static_cast<size_t>(shard)]);
        boxes.push_back(std::move(box));
      } while (next_index(at, counts));
    }
    return boxes;
  }

  Place sender_to(int64_t device, const std::vector<int64_t>& holders) const {
    const auto place = [&](int64_t holder) { return places_[static_cast<size_t>(holder)]; };
    if (std::ranges::find(holders, device) != holders.end()) return place(device);
    const int64_t process = place(device).process;
    const auto near = std::ranges::find_if(holders, [&](int64_t holder) { return place(holder).process == process; });
    // Receivers take turns, so that one holder does not send to all of them.
    return place(near != holders.end() ? *near : holders[static_cast<size_t>(device) % holders.size()]);
  }

  NdArray source(const Box& box) const {
    Dims start, step;
    for (const ExchangePiece& piece : box.dims) {
      start.push_back(piece.from);
      step.push_back(piece.from_step);
    }
    return region(operands_[box.operand][box.sender.index], start, counts_of(box), step);
  }

  void send(Transport& transport, const std::map<int64_t, std::vector<Box>>& sent,
            const std::map<int64_t, std::vector<Box>>& awaited) {
    std::vector<Message> messages;
    std::vector<Transport::Outgoing> outgoing;
    std::vector<Transport::Incoming> incoming;
    const auto bytes = [](const NdArray& memory) { return static_cast<size_t>(memory.nbytes()); };
    for (const auto& [process, boxes] : sent) {
      Message made(operands_[0].dtype(), boxes);
      for (size_t i = 0; i < boxes.size(); ++i) copy_parallel(made.parts[i], source(boxes[i]));
      outgoing.push_back({process, {made.memory.data(), bytes(made.memory)}});
      // Kept until all bytes have arrived. The arrays share the memory, so that moving the message moves no bytes.
      messages.push_back(std::move(made));
    }
    for (const auto& [process, boxes] : awaited) {
      Message made(operands_[0].dtype(), boxes);
      incoming.push_back({process, {made.memory.data(), bytes(made.memory)}});
      received_[process] = std::move(made.parts);
      messages.push_back(std::move(made));
    }
    transport.exchange(outgoing, incoming);
  }

  bool is_view(const std::vector<std::vector<Box>>& tiles) const {
    return std::ranges::all_of(tiles, [&](const std::vector<Box>& boxes) {
      if (boxes.size() != 1 || boxes[0].sender.process != devices_.position) return false;
      for (size_t d = 0; d < shape_.size(); ++d) {
        const ExchangePiece& piece = boxes[0].dims[d];
        if (piece.to != 0 || piece.count != shape_[d] || (piece.to_step != 1 && piece.count > 1)) return false;
      }
      return true;
    });
  }

  Shards views(const std::vector<std::vector<Box>>& tiles) const {
    std::vector<NdArray> list;
    for (const std::vector<Box>& boxes : tiles) list.push_back(source(boxes[0]));
    return {axes_, std::move(list)};
  }

  Shards copies(const std::vector<std::vector<Box>>& tiles) {
    Dims shape;
    for (const AxisRef& axis : axes_) shape.push_back(axis.size);
    shape.insert(shape.end(), shape_.begin(), shape_.end());
    const DType dtype = operands_[0].dtype();
    const Shards result(axes_, pooled_empty(dtype, std::move(shape)));
    std::map<int64_t, size_t> next;  // in what a process has sent
    // Messages are in the order of devices, as those of this process are.
    for (int64_t device = 0; device < main_.device_count(); ++device) {
      const Place receiver = places_[static_cast<size_t>(device)];
      if (receiver.process != devices_.position) continue;
      const NdArray to = result[receiver.index];
      const std::vector<Box>& boxes = tiles[static_cast<size_t>(receiver.index)];
      int64_t covered = 0;
      for (const Box& box : boxes) covered += element_count(counts_of(box));
      // Padding, too, has the same values in each run.
      if (covered != to.size()) copy_parallel(to, NdArray::full(dtype, to.shape(), Scalar::of_int(dtype, 0)));
      for (const Box& box : boxes) {
        Dims start, step;
        for (const ExchangePiece& piece : box.dims) {
          start.push_back(piece.to);
          step.push_back(piece.to_step);
        }
        const bool is_own = box.sender.process == devices_.position;
        const NdArray from = is_own ? source(box) : received_[box.sender.process][next[box.sender.process]++];
        copy_parallel(region(to, start, counts_of(box), step), from);
      }
    }
    return result;
  }

  const ExchangeMap& map_;
  const Mesh& main_;
  const DeviceSet& devices_;
  const AxisList axes_;  // of all shards
  std::vector<Shards> operands_;
  std::vector<Place> places_;                               // by logical index in the main mesh
  std::vector<std::vector<std::vector<int64_t>>> holders_;  // by operand and shard
  Dims shape_;                                              // of a tile
  std::map<int64_t, std::vector<NdArray>> received_;        // by process
};

}  // namespace

Shards exchanged_across_meshes(std::span<const Shards> operands, const ExchangeMap& map, const Mesh& main,
                               const DeviceSet& devices, Transport* transport) {
  return Exchange(operands, map, main, devices).run(transport);
}

}  // namespace shardwise
