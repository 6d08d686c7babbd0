// SPDX-License-Identifier: Apache-2.0
//
// What the explanations of values of one program have in common, found once: a question about an op may be one about
// thousands of values.
//
//   Inquiry inquiry(module, provenance);
//   explain(inquiry, %0);      // follows the axes of %0 back
//   explain(inquiry, %1);      // %1 = tanh %0: its paths are those of %0 and one step
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/explanation/axis_tracer.h"

namespace shardwise {

class Inquiry {
 public:
  Inquiry(const Module& module, const Provenance& provenance);

  const Module& module() const { return module_; }
  AxisHistory& history() { return history_; }
  AxisTracer& tracer(const Mesh& mesh);

  // The op that makes the value, those that use it, and the data-flow edges that it is at.
  const std::vector<OpId>& ops_at(ValueId value) const;
  bool has_barrier(RegionId body) const { return barred_.contains(body); }  // of a function

 private:
  void collect(RegionId region, RegionId body);
  void add(ValueId value, OpId op);

  const Module& module_;
  AxisHistory history_;
  std::map<const Mesh*, AxisTracer> tracers_;
  std::unordered_map<ValueId, std::vector<OpId>> ops_at_;
  std::unordered_set<RegionId> barred_;
};

}  // namespace shardwise
