// SPDX-License-Identifier: Apache-2.0
//
// A communicator for a rehearsal (allocation_log.h) of one device: a collective allocates a result of the local shape.
#pragma once

#include <span>

#include "shardwise/runtime/communicator.h"

namespace shardwise {

// Stands for the other devices where one device rehearses: each result has the shape of the collective's.
class OneDevice final : public Communicator {
 public:
  Shards run_on_its_mesh(const CollectiveCall& call, std::span<const Shards> operands) override;
  Shards on_mesh(const DeviceOrder&, std::span<const Shards> operands, const Collective& collective) override {
    return collective(*this, operands);
  }
};

}  // namespace shardwise
