// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/memory/saved_nodes.h"

#include <algorithm>
#include <utility>

#include "shardwise/choice/memory/step_price.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

SavedNodes::SavedNodes(const Module& module, const LiveRanges& ranges, const LiveWalk& walk, const Hardware& hardware)
    : module_(module),
      ranges_(ranges),
      walk_(walk),
      hardware_(hardware),
      executions_(module),
      roles_(module),
      effects_(module, UnusedConstraints::kRemove),
      of_home_(module.value_count(), kNone) {}

uint32_t SavedNodes::add(const SavedNode& node, SavedValue value) {
  found.nodes.push_back(node);
  found.values.push_back(std::move(value));
  return static_cast<uint32_t>(found.nodes.size() - 1);
}

SavedValue SavedNodes::of_step(const LiveStep& step, uint32_t level, std::vector<uint32_t> operands) {
  const bool can_repeat = !effects_(step.op) && !module_.op(step.op).def->traits.side_effect;
  SavedValue value{.ps = executions_.of(step.op).times(step_ps(module_, ranges_, step, hardware_)),
                   .can_repeat = can_repeat,
                   .operands = std::move(operands)};
  if (step.outputs.size() < 2) return value;
  value.can_be_kept = false;
  const uint32_t whole =
      add({.kind = SavedKind::kStepItself, .level = level, .value = step.outputs[0]}, std::move(value));
  return {.can_repeat = can_repeat, .operands = {whole}};
}

void SavedNodes::need(std::vector<uint32_t>& operands, uint32_t node) {
  if (node != kNone && std::ranges::find(operands, node) == operands.end()) operands.push_back(node);
}

// An update in place lies in its operand, too, but writes over it.
bool SavedNodes::is_view(ValueId value) const {
  const OpId op = module_.value(value).op;
  return walk_.lies_in[value.index] && op && roles_.of(op) == FusionRole::kView;
}

ValueId SavedNodes::memory_of(ValueId value) const {
  while (is_view(value)) value = walk_.lies_in[value.index];
  return value;
}

bool SavedNodes::is_constant(const LiveStep& step) const {
  return step.chain == nullptr && module_.op(step.op).def->traits.constant_like;
}

}  // namespace shardwise
