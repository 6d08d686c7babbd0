// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a step that it returns changed, but not by elementwise ops of their shape alone:
//
//   %1 = reshape %w;  %2 = sub %1, %g;  %3 = reshape %2;  return %3        {%w, reshape}
//
// `shard_update` leaves such an update whole, and reports the op.
#pragma once

#include <vector>

#include "shardwise/shard_update/update_graph.h"

namespace shardwise {

struct UnfollowedUpdate {
  ValueId argument;
  OpId op;  // the last one that is neither elementwise nor a norm
};

// Pairs each result that belongs to no group with the first argument of its type that it depends on and that is not paired yet.
std::vector<UnfollowedUpdate> unfollowed_updates(const UpdateGraph& graph);

}  // namespace shardwise
