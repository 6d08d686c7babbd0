// SPDX-License-Identifier: Apache-2.0
//
// The positions of devices at which an exchange along one dim can be largest, without a visit to all of them.
//
//   64 + 64 rows concatenated on x=4096      operands of blocks 16, a result of blocks 32: about 100 positions, around
//                                            those where a tile leaves one operand, or has no rows of its own shard
//
// Tile i and shard i begin at positions that are linear in i. So what a tile needs of an operand, and what of it is on
// the device, are linear in i between a few turning points, where one border passes another; strides add a part that is
// periodic. The largest sum of such counts is close to a turning point.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

// Returns positions along the axes of dim `d`, in order, that include the maximum of every weighted sum of per-operand
// counts. Returns none if the result and the operands are sharded along different axes there, or if all positions would
// be needed.
std::optional<std::vector<int64_t>> turning_points(const ExchangeMap& map, size_t d);

// The same for the sum of several exchanges, if all are sharded along the same axes, each in one dim at most.
struct TurningPoints {
  AxisList axes;
  std::vector<int64_t> positions;
};
std::optional<TurningPoints> turning_points(std::span<const ExchangeMap> maps);

}  // namespace shardwise
