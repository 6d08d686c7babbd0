// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_edges.h"

#include <algorithm>

namespace shardwise {
namespace {

// The axes that step `s` added to a dim, of each whoever had its last new digits: factors of a dim may bring one each.
void append_edges(AxisHistory& history, const Module& module, size_t s, AxisEdge edge, std::vector<AxisEdge>& edges) {
  const PropagationStep& step = history.steps()[s];
  const TensorSharding& after = module.context().sharding(step.after);
  const ShardingId old = history.at(changed_by(step), history.visit_begin(s));
  const TensorSharding* before = old ? &module.context().sharding(old) : nullptr;
  for (size_t d = 0; d < after.dims.size(); ++d) {
    for (const AxisRef& axis : after.dims[d].axes) {
      if (before != nullptr && std::ranges::find(before->dims[d].axes, axis) != before->dims[d].axes.end()) continue;
      const std::vector<AxisSource> sources = history.sources(s, d, axis);
      const auto source =
          std::find_if(sources.rbegin(), sources.rend(), [](const AxisSource& one) { return !one.own; });
      if (source == sources.rend()) continue;
      edge.axis = axis;
      edge.source = source->tensor;
      edges.push_back(edge);
    }
  }
}

}  // namespace

std::vector<AxisEdge> axis_edges(AxisHistory& history, const Module& module) {
  std::vector<AxisEdge> edges;
  uint32_t visits = 0;
  std::vector<size_t> seen;  // tensors of the visit: the values of a class change together
  for (size_t s = 0; s < history.now(); ++s) {
    const PropagationStep& step = history.steps()[s];
    if (step.first) seen.clear();
    if (step.round == PropagationStep::kByPriority || !step.after) continue;
    if (step.op && module.op(step.op).def->traits.sharding_group) continue;
    if (step.first) ++visits;
    const size_t target = step.op ? step.tensor : (step.value ? 0 : 1);
    if (std::ranges::find(seen, target) != seen.end()) {
      for (AxisEdge& edge : edges) {
        if (edge.visit == visits - 1 && edge.target == target) edge.members.push_back(step.value);
      }
      continue;
    }
    seen.push_back(target);
    AxisEdge edge{.visit = visits - 1, .op = step.op, .result = step.op ? 0 : step.tensor, .axis = {}};
    edge.target = target;
    if (step.value) edge.members.push_back(step.value);
    append_edges(history, module, s, edge, edges);
  }
  return edges;
}

}  // namespace shardwise
