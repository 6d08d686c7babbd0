// SPDX-License-Identifier: Apache-2.0
//
// The parts of a run that a rehearsal (allocation_log.h) replaces.
//
//   kernel: %y = dot_general %a, %b      allocates %y, and stops
//   kernel: %y = transpose %a            sets a view of %a: done
//   collective of one device             allocates a result of the local shape
#pragma once

#include <span>

#include "shardwise/runtime/communicator.h"
#include "shardwise/runtime/kernel_context.h"

namespace shardwise {

// Runs the kernel of one shard until it has asked for all its results, which is before it computes them.
void rehearse_kernel(const Kernel& kernel, const StepOperands& all, std::span<const NdArray> operands,
                     StepResults& results, int64_t shard);

// Stands for the other devices where one device rehearses: each result has the shape of the collective's.
class OneDevice final : public Communicator {
 public:
  Shards axis_index(AxisSpan axes) override;
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
  Shards on_mesh(const DeviceOrder&, std::span<const Shards> operands, const Collective& collective) override {
    return collective(*this, operands);
  }
};

}  // namespace shardwise
