// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/opposite_shifts.h"

#include <algorithm>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/cost/device_tiers.h"

namespace shardwise {
namespace {

// Each device has a link to both neighbors in each dim that the group takes, in the tier in which it shifts.
bool has_two_way_links(const LocalCollective& shift, const Hardware& hardware) {
  const TierCut cut = device_tiers(*shift.mesh, hardware)->cut(shift.axes);
  if (cut.empty() || cut.back().spans.empty()) return false;
  return std::ranges::all_of(cut.back().spans,
                             [](const TorusSpan& span) { return span.closes && span.size > 2; });
}

bool are_opposite(const LocalCollective& first, const LocalCollective& second) {
  return first.mesh == second.mesh && first.axes == second.axes && first.permute.shift == -second.permute.shift &&
         first.operand_bytes >= second.operand_bytes;
}

}  // namespace

std::vector<bool> shifts_beside_opposite(const Module& module, const TaskGraph& graph, const Hardware& hardware) {
  std::vector<bool> is_beside(graph.tasks.size(), false);
  std::vector<LocalCollective> alone;  // shifts without a partner yet
  for (uint32_t i = 0; i < graph.tasks.size() && !graph.recurrences.empty(); ++i) {
    const Task& task = graph.tasks[i];
    const auto is_carry = [&](uint32_t made) { return graph.tasks[made].kind == Task::Kind::kCarry; };
    if (task.kind != Task::Kind::kTransfer || !std::ranges::all_of(task.after, is_carry)) continue;
    LocalCollective found = read_collective(OpView(module, task.op));
    if (found.transfer != TransferKind::kShift) continue;
    const auto partner =
        std::ranges::find_if(alone, [&](const LocalCollective& other) { return are_opposite(other, found); });
    is_beside[i] = partner != alone.end() && has_two_way_links(found, hardware);
    if (partner != alone.end()) {
      alone.erase(partner);
    } else {
      alone.push_back(std::move(found));
    }
  }
  return is_beside;
}

}  // namespace shardwise
