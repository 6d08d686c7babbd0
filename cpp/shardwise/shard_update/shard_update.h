// SPDX-License-Identifier: Apache-2.0
//
// Weight-update sharding (Xu et al. 2020), asked for by CompileOptions::shard_update: each weight and its optimizer
// state are split over axes along which the model replicates them. Before, on a mesh data=8 with %x split over it:
//
//   %g = dot_general %x, %dy                 (the loss reads %w)
//   %1 = sub %w, (mul %g, 0.1)
//   return %1
//
// and behind, with constraints that propagation and the partitioner treat like those of a user:
//
//   %w1 = constraint %w [{"data"}, {}]       the state is scattered in …
//   %w2 = constraint %w1 [{}, {}]            … gathered where the forward pass reads it
//   %g1 = constraint %g [{"data"}, {}]       the gradient arrives by a reduce-scatter
//   %1 = sub %w1, (mul %g1, 0.1)
//   %2 = constraint %1 [{"data"}, {}]        … and out
//   return %2
//
// The layouts without the switch are those of one more propagation. update_graph.h finds the updates, in main and in
// the bodies of its loops, and update_layout.h lays them out. What is left whole is reported with the reason.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

// ShardingError for axes that the mesh does not have, or a dtype that is no float.
Module shard_update(Module module, PassContext& context);
inline constexpr Pass kShardUpdate{.name = "shard_update",
                                   .doc = "split weight updates over axes, where CompileOptions asks for it",
                                   .run = shard_update,
                                   .keeps = Snapshot::kGlobal,
                                   .reads = option("shard_update") | option("gather_dtype")};

}  // namespace shardwise
