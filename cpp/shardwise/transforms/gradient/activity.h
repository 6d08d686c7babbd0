// SPDX-License-Identifier: Apache-2.0
//
// Forward analysis: the floats that depend on `wrt`, in a region and in the regions of its ops.
//
//   wrt {%x}:   %0 = tanh %x        active
//               %1 = compare %0, 0  not a float
//               %2 = select %1, 1, 2
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

class Activity {
 public:
  Activity(const Module& module, std::span<const ValueId> wrt);
  bool operator()(ValueId value) const { return value.index < active_.size() && active_[value.index]; }
  void visit(OpId op);  // in the order of the program

 private:
  void mark(ValueId value);
  void mark_if(bool is_active, ValueId value) {
    if (is_active) mark(value);
  }
  void visit_ops(RegionId region);
  void visit_operands(OpId op);
  void visit_loop(OpId op);
  void visit_branches(OpId op);
  void visit_inline(OpId op);
  void check_no_capture(OpId op) const;

  const Module& module_;
  std::vector<bool> active_;  // by value
};

}  // namespace shardwise
