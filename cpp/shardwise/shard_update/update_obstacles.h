// SPDX-License-Identifier: Apache-2.0
//
// Updates that no split computes in parts: with a matrix product of the state (Muon), or its inverse root (Shampoo).
//
//   %n = add (mul %m, 0.9), %g             an updated state
//   %o = dot_general %n, %n                an obstacle: it computes with updated states, and with no data
//   %v = sub %w, %o                        the group of %w has it, too: its source comes from one
//
// A forward pass also multiplies updated weights, where a program has several steps, but with data: a batch. A gradient is a
// sum over the batch, and no data any more: what computes with it on its way to the update is an obstacle, too, unless it is
// linear in the sum, as the gradient of one factor of a product. Ops that no updated state reads, such as metrics, are none.
#pragma once

#include <functional>

#include "shardwise/shard_update/update_graph.h"

namespace shardwise {

// Sets UpdateGroup::obstacle. `holds_data`: whether an argument, or a value from around the region, is part of a batch.
// `is_split`: whether a value is split as batches are.
void find_obstacles(UpdateGraph& graph, const std::function<bool(ValueId)>& holds_data,
                    const std::function<bool(ValueId)>& is_split);

}  // namespace shardwise
