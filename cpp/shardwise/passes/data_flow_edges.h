// SPDX-License-Identifier: Apache-2.0
//
// During propagation, each value that passes through an op with regions (DataFlowEdge) is represented by an edge op:
//
//   %1 = while(%a = %0) …                         %1 = while(%a = %0) …
//   %2 = tanh %1                     add          %e = sdy.data_flow_edge %1
//                                    ---->        %2 = tanh %e
//   %1 is sharded like %e            sink
//                                    <----
//
// This is Shardy's representation. A text that already has edges keeps them and gets the missing ones.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/passes/provenance.h"

namespace shardwise {

// The edges that no edge op represents.
std::vector<DataFlowEdge> bare_edges(const Module& module);

void add_data_flow_edges(Module& module);
// Removes the edge ops. Their shardings and their provenance move to the owners.
void sink_data_flow_edges(Module& module, Provenance& provenance);

// The edges that the ops of a module represent: for an edge op, the sources and targets of the value behind it. An edge
// op behind any other value is the identity, whose only source is that value.
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
