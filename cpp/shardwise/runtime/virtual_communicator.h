// SPDX-License-Identifier: Apache-2.0
//
// The communicator of a virtual mesh. All devices are in this process, so most collectives only rearrange the dims of a
// stack of shards. all_to_all and permute are views. all_gather is a view when the shards are already in order (a dim-0
// gather of a kernel's result), else one copy. A reduction reads every operand once. An exchange is one
// copy, or a view if each tile is part of one shard.
//
//   stack {x=4, y=2, 16, 8}, all_to_all {x} from dim 0 to dim 1:
//     split dim 1      {x=4, y=2, 16, 4, 2}
//     reorder          {4, y=2, x=4, 16, 2}     the new x is the part of dim 1, the old x goes in front of dim 0
//     merge            {x=4, y=2, 64, 2}
#pragma once

#include "shardwise/runtime/communicator.h"

namespace shardwise {

class VirtualCommunicator final : public DeviceCommunicator {
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
};

}  // namespace shardwise
