// SPDX-License-Identifier: Apache-2.0
//
// The dims of a weight of which loops read a part in each trip:
//
//   scan over %w: tensor<80x8192x1024xbf16> { dynamic_slice %w, sizes = [1, 8192, 1024] }      {true, false, false}
//
// An update that is split along the layers would keep a layer on one device, and its gradients whole until after the loop.
#pragma once

#include <vector>

#include "shardwise/shard_update/update_graph.h"

namespace shardwise {

std::vector<bool> dims_cut_in_loops(UpdateGraph& graph, ValueId weight);

}  // namespace shardwise
