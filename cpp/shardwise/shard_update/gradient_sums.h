// SPDX-License-Identifier: Apache-2.0
//
// Adds up the parts of a gradient before a term of the state joins them, so that one sum travels:
//
//   %1 = add %a, %decay           %a, %b: gradients of two uses of %w          %1 = add %a, %b
//   %2 = add %1, %b               %decay = mul %w, 0.1                   ->    %2 = add %1, %decay
//
// A loss with a penalty on a tied weight is of this kind. Floats are added in another order.
#pragma once

#include "shardwise/shard_update/update_graph.h"

namespace shardwise {

// Whether anything changed; then the graph is no longer that of the module.
bool join_gradient_sums(UpdateGraph& graph);

}  // namespace shardwise
