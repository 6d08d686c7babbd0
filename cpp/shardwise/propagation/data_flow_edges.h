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
#include "shardwise/ir/pass.h"

namespace shardwise {

void add_data_flow_edges(Module& module);
// Removes the edge ops. Each owner takes the sharding of its edge, and steps that named an edge name its owner.
void sink_data_flow_edges(Module& module, PassContext& context);

// A manual region's inside and outside see one sharding differently (DataFlowEdge::manual_axes): what the edge's
// sources see of the sharding that the program keeps for the edge, and the other way round.
ShardingId seen_from_sources(Context& context, const DataFlowEdge& edge, ShardingId kept);
ShardingId seen_from_target(Context& context, const DataFlowEdge& edge, ShardingId at_sources);

// The edges in a module. Those of edge ops have the sources and targets of the value that the op reads; an edge op on
// any other value is the identity, and that value is its source.
class DataFlowEdges {
 public:
  DataFlowEdges() = default;
  explicit DataFlowEdges(const Module& module);
  const DataFlowEdge* find(OpId edge_op) const { return find(edges_, edge_op); }
  bool empty() const { return edges_.empty(); }  // no edge ops
  static const DataFlowEdge* find(const std::vector<std::pair<OpId, DataFlowEdge>>& edges, OpId edge_op);
  const std::vector<std::pair<OpId, DataFlowEdge>>& all() const { return edges_; }
  const std::vector<DataFlowEdge>& bare() const { return bare_; }  // of values without an edge op

 private:
  std::vector<std::pair<OpId, DataFlowEdge>> edges_;  // in the order of op ids
  std::vector<DataFlowEdge> bare_;                    // in the order of the program
};

}  // namespace shardwise
