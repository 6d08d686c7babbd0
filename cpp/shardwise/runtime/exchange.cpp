// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/exchange.h"

#include <functional>
#include <map>

#include "shardwise/ops/shared/strided_kernels.h"
#include "shardwise/runtime/array_copies.h"
#include "shardwise/runtime/axis_pieces.h"
#include "shardwise/runtime/exchange_devices.h"
#include "shardwise/runtime/memory/buffer_pool.h"

namespace shardwise {
namespace {

// Elements of one shard that go to one tile.
struct Box {
  size_t operand = 0;
  int64_t process = 0;  // that has the shard
  int64_t shard = 0;    // among those of the process
  std::vector<ExchangePiece> dims;
  NdArray received = {};  // from another process
};

Dims counts_of(const Box& box) {
  Dims counts;
  for (const ExchangePiece& piece : box.dims) counts.push_back(piece.count);
  return counts;
}

struct Tile {
  Dims real;  // rows that are not padding
  std::vector<Box> boxes;
};

// Each process computes all senders and receivers locally, so no request messages are needed. All processes call the
// transport, even without a message, because its calls must match.
class ShardExchange {
 public:
  ShardExchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map, const Mesh* main,
                const DeviceSet& devices = {})
      : operands_(operands),
        fill_(fill),
        map_(map),
        own_process_(devices.position),
        devices_(devices_of_exchange(operands, fill, map, main, devices)) {
    for (const ExchangeTarget& to : map.to) shape_.push_back(to.rows);
    for (int64_t p = 0; p < product(axes()); ++p) tiles_.push_back(tile(own_process_, p));
  }

  void receive_from_others(Transport& transport, int64_t processes) {
    std::map<int64_t, std::vector<Box>> sent;
    for (int64_t process = 0; process < processes; ++process) {
      if (process != own_process_) add_boxes_for(process, sent);
    }
    std::map<int64_t, std::vector<std::reference_wrapper<Box>>> awaited;
    for (Tile& tile : tiles_) {
      for (Box& box : tile.boxes) {
        if (box.process != own_process_) awaited[box.process].push_back(box);
      }
    }
    std::vector<NdArray> messages;  // alive until all have arrived
    std::vector<Transport::Outgoing> outgoing;
    for (const auto& [process, boxes] : sent) {
      const std::vector<NdArray> parts = parts_of_message(boxes, messages);
      for (size_t i = 0; i < parts.size(); ++i) copy_parallel(parts[i], source(boxes[i], false));
      outgoing.push_back({process, memory_of(messages.back())});
    }
    std::vector<Transport::Incoming> incoming;
    for (const auto& [process, boxes] : awaited) {
      const std::vector<NdArray> parts = parts_of_message(boxes, messages);
      for (size_t i = 0; i < parts.size(); ++i) boxes[i].get().received = parts[i];
      incoming.push_back({process, memory_of(messages.back())});
    }
    transport.exchange(outgoing, incoming);
  }

  Shards run() {
    // All tiles or none: one tile that must be copied makes the stack a new buffer.
    bool is_view = true;
    for (const Tile& tile : tiles_) is_view = is_view && is_part_of_one_shard(tile);
    return is_view ? views() : copies();
  }

 private:
  const AxisList& axes() const { return devices_->axes(); }

  void add_boxes_for(int64_t process, std::map<int64_t, std::vector<Box>>& sent) {
    for (int64_t p = 0; p < product(axes()); ++p) {
      for (Box& box : tile(process, p).boxes) {
        if (box.process == own_process_) sent[process].push_back(std::move(box));
      }
    }
  }

  // The elements of the boxes, one after the other in a new message.
  std::vector<NdArray> parts_of_message(const auto& boxes, std::vector<NdArray>& messages) const {
    int64_t bytes = 0;
    for (const Box& box : boxes) bytes += element_count(counts_of(box)) * item_size(operands_[box.operand].dtype());
    // A message needs no header, because both sides list the boxes in the same order: tile, operand, shard.
    const NdArray& message = messages.emplace_back(pooled_empty(DType::kU8, {bytes}));
    std::byte* at = message.data();
    std::vector<NdArray> parts;
    for (const Box& box : boxes) {
      const DType dtype = operands_[box.operand].dtype();
      Dims shape = counts_of(box);
      Dims strides = row_major_strides(shape, item_size(dtype));
      at += parts.emplace_back(dtype, std::move(shape), std::move(strides), at, message.owner()).nbytes();
    }
    return parts;
  }

  Tile tile(int64_t process, int64_t p) {
    devices_->receive(process, p);
    Tile tile;
    for (size_t d = 0; d < map_.to.size(); ++d) tile.real.push_back(real_rows(map_.to[d], devices_->tile(d)));
    for (size_t k = 0; k < operands_.size(); ++k) add_boxes(k, tile);
    return tile;
  }

  void add_boxes(size_t operand, Tile& tile) const {
    const std::vector<ExchangeSource>& from = map_.from[operand];
    std::vector<std::vector<std::pair<int64_t, ExchangePiece>>> pieces(from.size());  // by dim; with the shard's number
    Dims counts;
    for (size_t d = 0; d < from.size(); ++d) {
      const int64_t i = devices_->tile(d);
      const auto [first, last] = senders(map_.to[d], from[d], i);
      for (int64_t j = first; j <= last; ++j) {
        const ExchangePiece piece = piece_between(map_.to[d], from[d], i, j);
        if (piece.count > 0) pieces[d].emplace_back(j, piece);
      }
      if (pieces[d].empty()) return;
      counts.push_back(static_cast<int64_t>(pieces[d].size()));
    }
    Dims index(from.size(), 0);
    do {
      Box box{.operand = operand, .dims = {}};
      Dims shards;
      for (size_t d = 0; d < from.size(); ++d) {
        const auto& [shard, piece] = pieces[d][static_cast<size_t>(index[d])];
        shards.push_back(shard);
        box.dims.push_back(piece);
      }
      const ExchangeDevices::Sender sender = devices_->sender(operand, shards);
      box.process = sender.process;
      box.shard = sender.shard;
      tile.boxes.push_back(std::move(box));
    } while (next_index(index, counts));
  }

  NdArray source(const Box& box, bool with_padding) const {
    if (box.received.data() != nullptr) return box.received;
    Dims start, shape, step;
    for (size_t d = 0; d < box.dims.size(); ++d) {
      start.push_back(box.dims[d].from);
      shape.push_back(with_padding ? shape_[d] : box.dims[d].count);
      step.push_back(box.dims[d].from_step);
    }
    return region(operands_[box.operand][box.shard], start, std::move(shape), step);
  }

  // … with as many rows after it as the tile has padding.
  bool is_part_of_one_shard(const Tile& tile) const {
    if (tile.boxes.size() != 1) return false;
    const Box& box = tile.boxes[0];
    if (box.process != own_process_) return false;
    for (size_t d = 0; d < box.dims.size(); ++d) {
      const ExchangePiece& piece = box.dims[d];
      if (piece.to != 0 || piece.count != tile.real[d] || (piece.to_step != 1 && piece.count > 1)) return false;
      // The view has the rows of the whole tile, so the shard must have rows in the place of the padding, too.
      const int64_t last = piece.from + piece.from_step * (shape_[d] - 1);
      if (last < 0 || last >= map_.from[box.operand][d].block) return false;
    }
    return true;
  }

  Shards views() const {
    std::vector<NdArray> list;
    for (const Tile& tile : tiles_) list.push_back(source(tile.boxes[0], true));
    return {axes(), std::move(list)};
  }

  Shards copies() const {
    const Shards result(axes(), pooled_empty(operands_[0].dtype(), concatenated(sizes_of(axes()), shape_)));
    for (size_t p = 0; p < tiles_.size(); ++p) {
      const NdArray to = result[static_cast<int64_t>(p)];
      if (to.size() == 0) continue;
      // The whole tile first, boxes over it: the gaps between boxes may have any form.
      if (!is_covered(tiles_[p])) fill(to, static_cast<int64_t>(p));
      for (const Box& box : tiles_[p].boxes) {
        Dims start, count, step;
        for (const ExchangePiece& piece : box.dims) {
          start.push_back(piece.to);
          count.push_back(piece.count);
          step.push_back(piece.to_step);
        }
        copy_parallel(region(to, start, count, step), source(box, false));
      }
    }
    return result;
  }

  // Padding, too, has the same values in each run.
  bool is_covered(const Tile& tile) const {
    int64_t covered = 0;
    for (const Box& box : tile.boxes) covered += element_count(counts_of(box));
    return covered == element_count(shape_);
  }

  void fill(const NdArray& to, int64_t p) const {
    if (fill_ == nullptr) {
      copy_parallel(to, NdArray::full(to.dtype(), to.shape(), Scalar::of_int(to.dtype(), 0)));
      return;
    }
    const NdArray value = (*fill_)[position_along(fill_->axes(), axes(), p)];
    copy_parallel(to, restrided(value, to.shape(), Dims(to.shape().size(), 0)));
  }

  std::span<const Shards> operands_;
  const Shards* fill_;
  const ExchangeMap& map_;
  const int64_t own_process_;
  const std::unique_ptr<ExchangeDevices> devices_;
  Dims shape_;  // of a tile
  std::vector<Tile> tiles_;
};

}  // namespace

Shards exchanged(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map, const Mesh* main) {
  return ShardExchange(operands, fill, map, main).run();
}

Shards exchanged(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map, const Mesh* main,
                 const DeviceSet& devices, Transport& transport) {
  ShardExchange exchange(operands, fill, map, main, devices);
  exchange.receive_from_others(transport, product(devices.pinned));
  return exchange.run();
}

}  // namespace shardwise
