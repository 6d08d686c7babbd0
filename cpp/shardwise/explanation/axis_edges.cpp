// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/axis_edges.h"

#include <algorithm>

namespace shardwise {
namespace {

// The axes that step `s` added to a dim. An axis whose digits came from several tensors has the last one as its source:
// factors of a dim may bring one each.
void append_edges(AxisHistory& history, const Module& module, size_t s, AxisEdge edge, std::vector<AxisEdge>& edges) {
  const PropagationStep& step = history.steps()[s];
  const TensorSharding& after = module.context().sharding(step.after);
  const ShardingId old = history.at(changed_by(step), history.visit_begin(s));
  const TensorSharding* before = old ? &module.context().sharding(old) : nullptr;
  for (size_t d = 0; d < after.dims.size(); ++d) {
    for (const AxisRef& axis : after.dims[d].axes) {
      if (before != nullptr && std::ranges::find(before->dims[d].axes, axis) != before->dims[d].axes.end()) continue;
      // Digits that the dim itself had are no edge.
      const std::vector<AxisSource> sources = history.sources(s, d, axis);
      const auto last = std::ranges::find(sources.rbegin(), sources.rend(), false, &AxisSource::own);
      if (last == sources.rend()) continue;
      edge.axis = axis;
      edge.source = last->tensor;
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
    const bool is_deferral = history.round_of(s).round == PropagationRound::kByPriority;
    if (is_deferral || !step.after || history.is_group(step.op)) continue;
    if (step.first) ++visits;
    AxisEdge edge{.visit = visits - 1, .at = visited_by(step), .axis = {}, .target = position_of(step)};
    if (std::ranges::find(seen, edge.target) != seen.end()) {
      for (AxisEdge& known : edges) {
        if (known.visit == edge.visit && known.target == edge.target) known.members.push_back(step.value);
      }
      continue;
    }
    seen.push_back(edge.target);
    if (step.value) edge.members.push_back(step.value);
    append_edges(history, module, s, edge, edges);
  }
  return edges;
}

}  // namespace shardwise
