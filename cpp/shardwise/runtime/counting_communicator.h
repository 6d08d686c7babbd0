// SPDX-License-Identifier: Apache-2.0
//
// Counts the bytes that each device of a mesh receives while a program runs.
//
//   CountingCommunicator counter(devices, mesh);     // `devices` computes; any communicator
//   executable.run(counter, …)
//   counter.received()                               // op -> bytes by device
//
// It reads only coordinates: for each device, at each device that sends to it, and in an exchange at each element
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
  Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) override;
  Shards on_mesh(const DeviceOrder& order, std::span<const Shards> operands, const Collective& collective) override;

 private:
  int64_t elements_received(const CollectiveCall& call, const Shards& operand, int64_t device) const;
  int64_t elements_permuted(const PermuteAttrs& permute, int64_t elements, int64_t device) const;
  int64_t elements_exchanged(const CollectiveCall& call, int64_t device) const;

  Communicator& devices_;
  MeshPtr mesh_;
  OpId op_;
  Received received_;
};

}  // namespace shardwise
