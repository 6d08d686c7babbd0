// SPDX-License-Identifier: Apache-2.0
//
// The devices of an exchange: the tile that each receives, and the device that sends it the elements of a shard.
//
//   mesh x=4, 8 rows          reverse: the device at x=1 receives tile 1, which is shard 2, from the device at x=2
//   mesh x=2, y=3 to a=3, b=2   the device at x=0, y=1 receives the tile at a=0, b=1, from any device with the elements
//
// On one mesh, a sender is in the receiver's place along axes that do not shard the operand. Across two meshes, a
// device takes what it holds itself; else a device of the same process sends, or one of those that hold the elements,
// in turn.
#pragma once

#include <memory>
#include <span>

#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/exchange.h"
#include "shardwise/runtime/device_set.h"

namespace shardwise {

// The digits along which the result varies, from those of the operands, the fill included.
DigitSet varying_after_exchange(const ExchangeMap& map, const Digits& digits, std::span<const DigitSet> operands);

class ExchangeDevices {
 public:
  struct Sender {
    int64_t process = 0;
    int64_t shard = 0;  // of the operand, among those of the process
  };

  virtual ~ExchangeDevices() = default;

  // The axes of the result's shards. Those of each process are numbered along them.
  const AxisList& axes() const { return axes_; }
  // The calls below are for the device that receives this shard of a process.
  virtual void receive(int64_t process, int64_t shard) = 0;
  // The number of its tile in a dim.
  virtual int64_t tile(size_t dim) const = 0;
  // The device that sends it the elements of one shard of an operand; `shards` is the number of that shard in each dim.
  virtual Sender sender(size_t operand, DimSpan shards) const = 0;

 protected:
  AxisList axes_;
};

// `main` is the mesh by whose axes shards are indexed, if the map is across meshes; null: its axes are of one mesh.
std::unique_ptr<ExchangeDevices> devices_of_exchange(std::span<const Shards> operands, const Shards* fill,
                                                     const ExchangeMap& map, const Mesh* main,
                                                     const DeviceSet& devices);

}  // namespace shardwise
