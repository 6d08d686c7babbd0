// SPDX-License-Identifier: Apache-2.0
//
// How an exchange is priced: as which transfer, and among which devices. Knows no op.
//
//   (1024, 512) on data=4, model=8, sharded [{"data"}, {"model"}]
//     a column from each neighbor     kShift     {"model"}: rows stay where they are
//     columns reversed                kPermute   {"model"}
//     -> [{"model"}, {"data"}]        kExchange  {"data", "model"}
#pragma once

#include "shardwise/cost/collective_cost.h"
#include "shardwise/mesh/exchange.h"

namespace shardwise {

// A dim that keeps its axes is moved along them: by a shift if each tile comes from its own shard and the two beside it,
// else by a permute. If a dim changes its axes, its elements come from all devices of the group. Across meshes, each
// device receives from any other.
TransferKind transfer_of(const ExchangeMap& map);

// The axes along which elements move: those of all dims but the ones whose tiles are the shards of every operand. Every
// digit comes once, and sub-axes are not widened. Across meshes: all axes of the receiving mesh.
AxisList moving_axes(const ExchangeMap& map);

}  // namespace shardwise
