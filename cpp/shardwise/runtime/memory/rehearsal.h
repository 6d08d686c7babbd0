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
  Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) override;
  Shards on_mesh(const DeviceOrder&, std::span<const Shards> operands, const Collective& collective) override {
    return collective(*this, operands);
  }
};

}  // namespace shardwise
