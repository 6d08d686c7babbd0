// SPDX-License-Identifier: Apache-2.0
//
// Emits what the loops of windowed products share: blocks that travel around a ring of devices, and the rows that they are.
//
//   RingLoop ring(builder, "x"=4, blocks of 16 rows)
//     %own = axis_index {"x"}
//   ring.first_row(inner, {.shift = -1}, %t)          16 ((%own + %t) mod 4): the block comes from the next device
//   ring.first_row(inner, {.shift = 1}, %t)           16 ((%own + 4 - %t) mod 4): … from the one before
//   ring.run({%block}, body)                          while(%t = 0, %block) cond { %t < 3 } do { body(inner, %t, …) }
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/mesh/mesh.h"

namespace shardwise {

// The rows of a block that travel one way around the ring.
struct RingStream {
  int64_t offset = 0, rows = 0;
  int64_t shift = 0;  // 1: a device receives from the one before it; -1: from the next one
};

class RingLoop {
 public:
  // `block`: rows of a device.
  RingLoop(Builder& builder, const Mesh& mesh, const AxisList& axes, int64_t block);

  int64_t devices() const { return devices_; }
  int64_t rows() const { return block_ * devices_; }      // of all devices
  ValueId number(Builder& builder, int64_t value) const;  // a scalar to count devices and trips

  // The first row of a stream's part of the block that has moved so many places to get here: a scalar from 0 to the devices.
  ValueId first_row(Builder& builder, const RingStream& stream, ValueId places) const;
  // Rows of a value, or other rows in their place.
  ValueId rows_of(Builder& builder, ValueId value, size_t dim, ValueId first, int64_t count) const;
  ValueId with_rows(Builder& builder, ValueId value, ValueId rows, size_t dim, ValueId first) const;
  // Zeros in the rows of a block from number `size` on of all devices' rows.
  ValueId masked(Builder& builder, ValueId block, size_t dim, ValueId first, int64_t size) const;
  // Zeros behind the rows, until there are as many as rows().
  ValueId filled_up(Builder& builder, ValueId value, size_t dim) const;
  ValueId shifted(Builder& builder, ValueId block, int64_t shift) const;

  // A loop of one trip less than there are devices. `body` makes the next carries, by the trip. Returns the last ones.
  using Body = std::function<std::vector<ValueId>(Builder& inner, ValueId trip, std::span<const ValueId> carries)>;
  std::vector<ValueId> run(Builder& builder, std::vector<ValueId> carries, const Body& body) const;

 private:
  std::vector<ValueId> starts(Builder& builder, size_t ndim, size_t dim, ValueId first) const;

  const Mesh& mesh_;
  const AxisList axes_;
  const int64_t devices_, block_;
  ValueId own_;
  DType index_dtype_ = DType::kI32;  // of rows
};

}  // namespace shardwise
