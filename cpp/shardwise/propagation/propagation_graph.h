// SPDX-License-Identifier: Apache-2.0
//
// Compact view of a program for propagation sweeps; large programs are bound by memory bandwidth.
//
//   %2 = add %0, %1          order     {%2, %3}
//   %3 = dot %2, %0          users     %0: {%3, %2}   %2: {%3}          last one first
//   return %3                uses      %0: 2   %1: 1   %2: 1   %3: 1    the return is one
//
// An edge op is notified about the sources of its edge, and counts as their user.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/propagation_rounds.h"
#include "shardwise/propagation/shardy/visit_order.h"

namespace shardwise {

class PropagationGraph {
 public:
  PropagationGraph(const Module& module, VisitOrder visit_order);

  struct Role {
    RoundOrder order;
    bool is_edge = false;
  };

  // The ops of all functions from top to bottom, bodies after their op.
  std::span<const OpId> order() const { return order_; }
  Role role(OpId op) const { return roles_[op.index]; }
  std::span<const ValueId> operands(OpId op) const {
    return operand_pool_.subspan(tensors_[op.index].operand_begin, tensors_[op.index].operand_count);
  }
  ValueId first_result(OpId op) const { return ValueId{tensors_[op.index].first_result}; }
  uint32_t result_count(OpId op) const { return tensors_[op.index].result_count; }

  // In the order of notifications. Edge ops are users of their sources.
  std::span<const OpId> users(ValueId value) const {
    const uint32_t begin = use_begin_[value.index];
    return std::span<const OpId>(users_).subspan(begin, use_begin_[value.index + 1] - begin);
  }

  // Uses as an operand or as a result of a region, except dropped ones.
  uint32_t uses(ValueId value) const { return uses_[value.index]; }
  void drop_use(ValueId value) { --uses_[value.index]; }

  const DataFlowEdges& edges() const { return edges_; }
  const DataFlowEdge* edge(OpId op) const;  // null: not an edge op
  // Whether values may have one sharding by other ops than those that use them: data-flow edges and sharding groups.
  bool ties_values() const { return holds_.flow || holds_.groups || !edges_.empty(); }
  // Edges that own a region argument are visited again in the next sweep, not at once (Shardy's order).
  bool waits_for_next_sweep(OpId op) const { return role(op).is_edge && !module_.value(edge(op)->owner).op; }
  // An operand, other than a scalar, with another use.
  bool shares_operands(OpId op) const;

 private:
  // The parts of an Operation that sweeps read.
  struct Tensors {
    uint32_t operand_begin, operand_count, first_result, result_count;
  };
  void add(OpId op, const ShardyOps& shardy);
  void index_users();
  uint32_t place_of(const DataFlowEdge& edge) const;
  template <class Visit>
  void for_each_use(Visit visit) const;
  template <class Visit>
  void for_each_use(RegionId region, const std::unordered_map<OpId, std::vector<OpId>>& edges_of_op,
                    Visit& visit) const;

  const Module& module_;
  VisitOrder visit_order_;
  std::span<const ValueId> operand_pool_;
  DataFlowEdges edges_;
  struct {
    bool edges = false, flow = false, groups = false;
  } holds_;  // ops of these kinds
  std::vector<OpId> order_;
  std::vector<Role> roles_;  // by op, as what follows; apart from it, since most sweeps only look at the role
  std::unique_ptr<Tensors[]> tensors_;  // unset for ops that no function holds
  std::vector<uint32_t> uses_;          // by value
  std::vector<uint32_t> use_begin_;     // by value, into users_
  std::vector<OpId> users_;
};

}  // namespace shardwise
