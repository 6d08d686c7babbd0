// SPDX-License-Identifier: Apache-2.0
//
// What the explanations of several values of one program share: a question about an op may be one about thousands of
// values.
//
//   ExplanationContext context(module, provenance);
//   explain(context, %0);      // follows the axes of %0 back
//   explain(context, %1);      // %1 = tanh %0: its paths are those of %0 and one step
#pragma once

#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/explanation/axis_tracer.h"
#include "shardwise/explanation/visit_replay.h"

namespace shardwise {

class ExplanationContext {
 public:
  ExplanationContext(const Module& module, const Provenance& provenance);

  const Module& module() const { return module_; }
  AxisHistory& history() { return history_; }
  VisitReplay& replay() { return replay_; }
  AxisTracer& tracer(const Mesh& mesh) { return tracers_.try_emplace(&mesh, module_, history_, mesh).first->second; }

  // The op that defines the value, its users, and the data-flow edges that connect it.
  const std::vector<OpId>& ops_at(ValueId value) const;
  bool has_barrier(RegionId body) const { return with_barriers_.contains(body); }  // of a function

 private:
  void collect(RegionId region, RegionId body);
  void add(ValueId value, OpId op);

  const Module& module_;
  AxisHistory history_;
  VisitReplay replay_;
  std::map<const Mesh*, AxisTracer> tracers_;
  std::unordered_map<ValueId, std::vector<OpId>> ops_at_;
  std::unordered_set<RegionId> with_barriers_;
};

}  // namespace shardwise
