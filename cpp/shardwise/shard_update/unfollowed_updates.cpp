// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/unfollowed_updates.h"

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// The ones of `wanted` that the result depends on.
std::vector<ValueId> those_behind(const Module& module, ValueId result, const std::vector<ValueId>& wanted) {
  std::vector<bool> is_behind(module.value_count());
  std::vector<ValueId> open = {result};
  is_behind[result.index] = true;
  while (!open.empty()) {
    const OpId op = module.value(open.back()).op;
    open.pop_back();
    if (!op) continue;
    visit_reads(module, op, [&](ValueId read) {
      if (!is_behind[read.index]) open.push_back(read);
      is_behind[read.index] = true;
    });
  }
  std::vector<ValueId> found;
  std::ranges::copy_if(wanted, std::back_inserter(found), [&](ValueId value) { return is_behind[value.index]; });
  return found;
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
    const OpId op = last_obstacle(module, result);
    // The carries of a loop are states of its body.
    if (!op || module.op(op).def->regions == Regions::kLoop) continue;
    std::vector<ValueId> alike;
    std::ranges::copy_if(graph.arguments(), std::back_inserter(alike), [&](ValueId argument) {
      return module.value(argument).type == module.value(result).type && !graph.group_of(argument) &&
             std::ranges::find(found, argument, &UnfollowedUpdate::argument) == found.end();
    });
    // Most results are like no argument: what is behind them is not looked for.
    if (!alike.empty()) alike = those_behind(module, result, alike);
    if (!alike.empty()) found.push_back({alike.front(), op});
  }
  return found;
}

}  // namespace shardwise
