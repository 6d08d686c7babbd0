// SPDX-License-Identifier: Apache-2.0
//
// Values that always have one sharding: the result of a data-flow edge with the other targets of that edge, and the
// members of a sharding group.
//
//   %1 = while(%a = %0) cond {…} do {…};  %e = sdy.data_flow_edge %1      one class: %e, and %a of both regions
//   sdy.sharding_group %x group_id=3;  sdy.sharding_group %y group_id=3   one class: %x, %y
//
// The owner behind an edge has no other user, and takes no part.
#pragma once

#include <span>
#include <vector>

#include "shardwise/propagation/data_flow_edges.h"

namespace shardwise {

class ValueClasses {
 public:
  ValueClasses() = default;  // each value alone
  // `bare`: of values without an edge op; what they hand on to regions is one with them.
  ValueClasses(const Module& module, const DataFlowEdges& edges, std::span<const DataFlowEdge> bare);

  // All values of the class, with `value`; empty when it stands alone.
  std::span<const ValueId> members(ValueId value) const;
  bool empty() const { return begin_.empty(); }
  // Without an edge op only those are told that use the value handed on, in Shardy as well: not those that use the
  // region's arguments.
  bool is_quiet(ValueId value) const { return !quiet_.empty() && quiet_[value.index]; }

 private:
  std::vector<uint32_t> class_of_;  // by value: 1 + its class, or 0
  std::vector<uint32_t> begin_;     // by class, into members_; and one behind
  std::vector<ValueId> members_;
  std::vector<bool> quiet_;  // by value
};

}  // namespace shardwise
