// SPDX-License-Identifier: Apache-2.0
//
// Which op carried which axis from which of its tensors to which: Shardy's sdy.propagation_edges.
//
//   axis_edges(history, module)          visit 0  dot_general  "data": operand 0 -> result 0
//                                        visit 1  tanh         "data": operand 0 -> result 0
#pragma once

#include <vector>

#include "shardwise/explanation/axis_history.h"

namespace shardwise {

// `axis` consists of the new digits and the digits that the dim had before.
struct AxisEdge {
  uint32_t visit = 0;  // those that changed a sharding, counted from 0
  VisitedOp at;
  AxisRef axis;
  size_t source = 0;  // positions among the tensors of the visit (VisitReplay::tensors)
  size_t target = 0;
  std::vector<ValueId> members = {};  // values that changed with the target, as those after one data-flow edge do
};

// The edges of all values, in the order of visits.
std::vector<AxisEdge> axis_edges(AxisHistory& history, const Module& module);

}  // namespace shardwise
