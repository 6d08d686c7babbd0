// SPDX-License-Identifier: Apache-2.0
//
// The map of an exchange: which elements of which operands a device receives, in constant size.
//
// A device holds a tile of the result, and receives each of its elements from a device that holds it. Dim by dim:
//
//   the result     device i along `to.axes` holds the indices t in [i·step, i·step + rows) below `size`
//   an operand     device j along `from.axes` holds the indices s in [j·block, (j + 1)·block) below `size`
//   the map        t in [begin, end) is s = (scale·t + offset) / holes, if that is whole and s is in [0, size)
//
//   33 rows in blocks of 5 on x=8     reverse          to {x, rows 5, step 5, size 33}   scale -1, offset 32
//   64 rows in blocks of 8 on x=8     window 3         to {x, rows 10, step 8, size 66}  offset -1: a row of each
//                                                      neighbor
//                                     interior pad 1   to {x, rows 16, step 16, size 127}  holes 2
//                                     first row        to {rows 1, step 1, size 1}       one device has it, all get it
//   concatenate 32 rows and 16        an operand each: begin 0, end 32; begin 32, end 48, offset -32
//
// An element that no operand has is the fill. Among devices that hold an element, the sender is in the receiver's place
// along axes that do not shard the operand: unreduced values stay unreduced. Where tiles nest, digit_map.h picks it.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "shardwise/mesh/axis.h"

namespace shardwise {

struct ExchangeTarget {
  AxisList axes;     // major to minor; empty: all devices have the same indices
  int64_t rows = 0;  // of a tile
  int64_t step = 0;  // from the first row of a tile to that of the next; less than `rows`: tiles overlap
  int64_t size = 0;  // indices from `size` on are padding, which is not received
  friend bool operator==(const ExchangeTarget&, const ExchangeTarget&) = default;
};

struct ExchangeSource {
  AxisList axes;
  int64_t block = 0;
  int64_t size = 0;
  int64_t scale = 1;  // not 0; negative: in reverse
  int64_t offset = 0;
  int64_t holes = 1;  // result indices from one element to the next, if scale is 1
  int64_t begin = 0;  // the result indices that come from this operand
  int64_t end = std::numeric_limits<int64_t>::max();
  friend bool operator==(const ExchangeSource&, const ExchangeSource&) = default;
};

struct ExchangeMap {
  std::vector<ExchangeTarget> to;                 // by dim
  std::vector<std::vector<ExchangeSource>> from;  // by operand and dim
  // The meshes of the axes in `to` and in `from`, if they are two meshes over the same devices; else null. Then devices
  // that hold an element of the operand are all the same to a receiver.
  MeshPtr to_mesh = nullptr, from_mesh = nullptr;

  bool is_across_meshes() const { return to_mesh != nullptr; }
  AxisList axes() const;  // of all operands and of the result, with repetitions
  friend bool operator==(const ExchangeMap&, const ExchangeMap&) = default;
};

// Rows that one device sends to another: row to + k·to_step of the receiver is row from + k·from_step of the sender.
struct ExchangePiece {
  int64_t to = 0, from = 0, count = 0, to_step = 1, from_step = 1;
};

// The rows of tile i of the result that shard j of the operand has.
ExchangePiece piece_between(const ExchangeTarget& to, const ExchangeSource& from, int64_t i, int64_t j);
// How many rows of tile i any shard of the operand has.
int64_t rows_needed(const ExchangeTarget& to, const ExchangeSource& from, int64_t i);
// How many rows of tile i are below `size`.
int64_t real_rows(const ExchangeTarget& to, int64_t i);
// The first and the last shard of the operand that may have rows of tile i. Returns {0, -1} if none has.
std::pair<int64_t, int64_t> senders(const ExchangeTarget& to, const ExchangeSource& from, int64_t i);
// The first and the last index of the result that comes from the operand. Returns {0, -1} if none does.
std::pair<int64_t, int64_t> range_from(const ExchangeTarget& to, const ExchangeSource& from);

// The elements of all operands that a device receives: those that it needs and does not hold. tile_at(axes) and
// shard_at(axes) are its positions on the mesh of the result and on that of the operands.
template <class TileAt, class ShardAt>
int64_t received_at(const ExchangeMap& map, TileAt&& tile_at, ShardAt&& shard_at) {
  int64_t elements = 0;
  for (const std::vector<ExchangeSource>& from : map.from) {
    // Products over the dims.
    int64_t needed = 1, held = 1;
    for (size_t d = 0; d < map.to.size(); ++d) {
      const int64_t tile = tile_at(map.to[d].axes);
      needed *= rows_needed(map.to[d], from[d], tile);
      held *= piece_between(map.to[d], from[d], tile, shard_at(from[d].axes)).count;
    }
    elements += needed - held;
  }
  return elements;
}
// The same for the device with this logical index in `to_mesh`, in a map across meshes.
int64_t received_across_meshes(const ExchangeMap& map, int64_t device);

// The coordinates of a device along some mesh axes, to read and write positions along lists of axes and sub-axes.
class Coordinates {
 public:
  explicit Coordinates(AxisSpan used);  // all at 0
  AxisList grid() const;                // one ref for each axis, which begins it; all positions along `used` differ
  void set_grid(int64_t index);         // the position along `grid`
  int64_t at(AxisSpan axes) const;      // row-major
  void set(AxisSpan axes, int64_t position);

 private:
  struct Axis {
    int32_t axis = 0;
    int64_t size = 1, coordinate = 0;
  };
  size_t find(int32_t axis) const;

  std::vector<Axis> axes_;
};

}  // namespace shardwise
