// SPDX-License-Identifier: Apache-2.0
//
// Classes of values that always have the same sharding: the result of a data-flow edge with the other targets of that
// edge, and the members of a sharding group.
//
//   %1 = while(%a = %0) cond {…} do {…};  %e = sdy.data_flow_edge %1      one class: %e, and %a of both regions
//   sdy.sharding_group %x group_id=3;  sdy.sharding_group %y group_id=3   one class: %x, %y
//
// The owner of an edge has no other user, and is not in the class.
#pragma once

#include <span>
#include <vector>

#include "shardwise/propagation/data_flow_edges.h"

namespace shardwise {

class ValueClasses {
 public:
  ValueClasses() = default;  // each value alone
  // A value without an edge op is in one class with the region arguments that it passes through.
  ValueClasses(const Module& module, const DataFlowEdges& edges);

  // All values of the class, including `value`; empty if it is alone.
  std::span<const ValueId> members(ValueId value) const;
  // Without an edge op, only users of the value itself are notified, not users of the region's arguments (as in
  // Shardy).
  bool skips_region_users(ValueId value) const {
    return !skip_region_users_.empty() && skip_region_users_[value.index];
  }

 private:
  std::vector<uint32_t> class_of_;  // by value: 1 + its class, or 0
  std::vector<uint32_t> begin_;     // by class, into members_; one more at the end
  std::vector<ValueId> members_;
  std::vector<bool> skip_region_users_;  // by value
};

}  // namespace shardwise
