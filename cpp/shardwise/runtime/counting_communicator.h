// SPDX-License-Identifier: Apache-2.0
//
// Counts the bytes that each device of a mesh receives while a program runs.
//
//   CountingCommunicator counter(devices, mesh);     // `devices` computes; any communicator
//   executable.run(counter, …)
//   counter.received()                               // op -> bytes by device
//
// It looks at coordinates alone: for each device, at each device that sends to it, and in an exchange at each element
// of a dim. It shares no code with the ledger, which predicts these numbers. Reductions are counted as a reduce-scatter
// and an all-gather of equal parts, whatever `devices` does. Each process counts for all devices. The run must be
// faithful: other runs may reduce partial results where they are made (early_reduction.h).
#pragma once

#include <map>
#include <vector>

#include "shardwise/runtime/communicator.h"

namespace shardwise {

class CountingCommunicator final : public Communicator {
 public:
  using Received = std::map<OpId, std::vector<int64_t>>;  // by device, in logical order

  CountingCommunicator(Communicator& devices, MeshPtr mesh) : devices_(devices), mesh_(std::move(mesh)) {}

  const Received& received() const { return received_; }

  void begin(OpId op) override;
  Shards axis_index(AxisSpan axes) override { return devices_.axis_index(axes); }
  Shards all_reduce(const Shards& operand, AxisSpan axes, Reducer reducer) override;
  Shards all_gather(const Shards& operand, std::span<const AxisList> gather) override;
  Shards reduce_scatter(const Shards& operand, AxisSpan axes, std::span<const AxisList> scatter,
                        Reducer reducer) override;
  Shards all_to_all(const Shards& operand, std::span<const AllToAllMove> moves) override;
  Shards permute(const Shards& operand, AxisSpan from, AxisSpan to) override;
  Shards shift(const Shards& operand, AxisSpan axes, int64_t offset, bool wrap) override;
  Shards chain(const Shards& operand, AxisSpan axes, int64_t step, Reducer reducer) override;
  Shards exchange(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map,
                  const Mesh* main) override;
  Shards on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) override;

 private:
  template <class Count>
  void add(Count&& elements_of, DType dtype);  // elements_of(device): what it receives

  Communicator& devices_;
  MeshPtr mesh_;
  OpId op_;
  Received received_;
};

}  // namespace shardwise
