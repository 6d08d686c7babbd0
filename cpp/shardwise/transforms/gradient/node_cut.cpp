// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/node_cut.h"

namespace shardwise {

std::vector<bool> NodeCut::run() {
  cut_.run();
  const std::vector<bool> reaches_sink = cut_.nodes_that_reach_sink();
  // Nodes whose own edge is full and leads into that side. The cut nearest to the sinks leaves fewer ops to be computed
  // again.
  std::vector<bool> is_cut(nodes_);
  for (size_t node = 0; node < nodes_; ++node) is_cut[node] = reaches_sink[exit(node)] && !reaches_sink[entry(node)];
  return is_cut;
}

}  // namespace shardwise
