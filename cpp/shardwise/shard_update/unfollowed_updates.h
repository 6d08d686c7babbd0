// SPDX-License-Identifier: Apache-2.0
//
// The arguments of a step that it returns changed, but not by elementwise ops of their shape alone:
//
//   %1 = reshape %w;  %2 = sub %1, %g;  %3 = reshape %2;  return %3        {%w, reshape}
//
// Such an update is left whole, and reported with the op.
#pragma once

#include <vector>

#include "shardwise/shard_update/update_graph.h"

namespace shardwise {

struct UnfollowedUpdate {
  ValueId argument;
  OpId op;  // the last one that is neither elementwise nor a norm
};

// Of the results that are of no group: each with the first argument of its type that it depends on and that has none yet.
std::vector<UnfollowedUpdate> unfollowed_updates(const UpdateGraph& graph);

}  // namespace shardwise
