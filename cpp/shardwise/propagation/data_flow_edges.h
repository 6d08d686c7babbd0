// SPDX-License-Identifier: Apache-2.0
//
// Inserts one edge op for each set of values that must share a sharding across an op's regions (DataFlowEdge):
//
//   %1 = while(%a = %0) …                         %1 = while(%a = %0) …
//   %2 = tanh %1                     add          %e = sdy.data_flow_edge %1
//                                    ---->        %2 = tanh %e
//   %1 is sharded like %e            sink
//                                    <----
//
// Shardy's representation: a text that already has edges keeps them, and gets the others.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/provenance.h"

namespace shardwise {

// The edges of values that have no edge op.
std::vector<DataFlowEdge> bare_edges(const Module& module);

void add_data_flow_edges(Module& module);
// Removes the edge ops. Each owner takes the sharding of its edge, and steps that named an edge name its owner.
void sink_data_flow_edges(Module& module, Provenance& provenance);

// A manual region's inside and outside see one sharding differently (DataFlowEdge::manual_axes): what the edge's
// sources see of the sharding that the program keeps for the edge, and the other way round.
ShardingId seen_from_sources(Context& context, const DataFlowEdge& edge, ShardingId kept);
ShardingId seen_from_target(Context& context, const DataFlowEdge& edge, ShardingId at_sources);

// The edges of the edge ops in a module: the sources and targets of the value that an edge op reads. An edge op on any
// other value is the identity, and that value is its source.
class DataFlowEdges {
 public:
  DataFlowEdges() = default;
  explicit DataFlowEdges(const Module& module);
  const DataFlowEdge* find(OpId edge_op) const;
  bool empty() const { return edges_.empty(); }
  const std::vector<std::pair<OpId, DataFlowEdge>>& all() const { return edges_; }

 private:
  std::vector<std::pair<OpId, DataFlowEdge>> edges_;  // in the order of op ids
};

}  // namespace shardwise
