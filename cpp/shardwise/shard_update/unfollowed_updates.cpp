// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/unfollowed_updates.h"

#include <algorithm>
#include <unordered_set>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

std::unordered_set<ValueId> all_behind(const Module& module, ValueId result) {
  std::unordered_set<ValueId> behind = {result};
  std::vector<ValueId> open = {result};
  while (!open.empty()) {
    const OpId op = module.value(open.back()).op;
    open.pop_back();
    if (!op) continue;
    visit_reads(module, op, [&](ValueId read) {
      if (behind.insert(read).second) open.push_back(read);
    });
  }
  return behind;
}

OpId last_obstacle(const Module& module, ValueId result) {
  ValueId value = result;
  while (module.value(value).op && is_elementwise(OpView(module, module.value(value).op))) {
    value = module.operands(module.value(value).op)[0];
  }
  return module.value(value).op;
}

}  // namespace

std::vector<UnfollowedUpdate> unfollowed_updates(const UpdateGraph& graph) {
  const Module& module = graph.module();
  std::unordered_set<uint32_t> followed;
  for (const UpdateGroup& group : graph.groups()) followed.insert(group.results.begin(), group.results.end());
  std::vector<UnfollowedUpdate> found;
  for (uint32_t place = 0; place < graph.results().size(); ++place) {
    const ValueId result = graph.results()[place];
    if (followed.contains(place) || module.type(result).ndim() == 0 || !module.value(result).op) continue;
    const std::unordered_set<ValueId> behind = all_behind(module, result);
    const auto is_changed = [&](ValueId argument) {
      return module.value(argument).type == module.value(result).type && behind.contains(argument) &&
             !graph.group_of(argument) &&
             std::ranges::find(found, argument, &UnfollowedUpdate::argument) == found.end();
    };
    const auto argument = std::ranges::find_if(graph.arguments(), is_changed);
    const OpId op = last_obstacle(module, result);
    // The carries of a loop are states of its body.
    if (argument == graph.arguments().end() || !op || module.op(op).def->regions == Regions::kLoop) continue;
    found.push_back({*argument, op});
  }
  return found;
}

}  // namespace shardwise
