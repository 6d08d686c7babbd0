// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/update_obstacles.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// Whether the op is none that a split update may do in parts.
bool computes(const OpView& op) {
  const Traits& traits = op.def().traits;
  return !is_elementwise(op) && !traits.movement && !traits.constant_like && !is_plain_reduction(op) &&
         op.def().regions != Regions::kBranches;
}

// By value: whether a result of a group is computed from it. A metric of updated weights is no part of an update.
std::vector<bool> values_behind_updates(const UpdateGraph& graph) {
  const Module& module = graph.module();
  std::vector<bool> is_behind(module.value_count());
  std::vector<ValueId> open;
  for (const UpdateGroup& group : graph.groups()) {
    for (const uint32_t place : group.results) open.push_back(graph.results()[place]);
  }
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    if (is_behind[value.index]) continue;
    is_behind[value.index] = true;
    if (const OpId op = module.value(value).op) visit_reads(module, op, [&](ValueId read) { open.push_back(read); });
  }
  return is_behind;
}

// By value: whether a sum over the batch is behind it, and no updated state. Values of the batch itself are not.
std::vector<bool> values_with_sums(const UpdateGraph& graph, const std::function<bool(ValueId)>& is_split) {
  const Module& module = graph.module();
  std::vector<bool> has_sum(module.value_count());
  for (const OpId id : module.region(graph.region()).ops) {
    bool has = false;
    visit_reads(module, id, [&](ValueId read) { has = has || has_sum[read.index] || is_split(read); });
    for (const ValueId result : results_of(module, id)) {
      has_sum[result.index] = has && !is_split(result) && !graph.depends(result);
    }
  }
  return has_sum;
}

// Whether addends of the sum may pass through the op: the gradient of a factor, %dw @ %b, is linear in that of the product.
bool passes_addends(const OpView& op, const std::vector<bool>& has_sum) {
  const Linearity& linear = op.def().linear;
  const auto is_sum = [&](ValueId operand) { return has_sum[operand.index]; };
  return linear.kind == Linear::kEach && (linear.reducers & reducer_bit(Reducer::kSum)) != 0 &&
         std::ranges::count_if(op.operands(), is_sum) == 1;
}

// The op, between a sum over the batch and what an update reads, that computes with the sum in a way that is not linear; none
// if there is no such op.
OpId obstacle_behind(const UpdateGraph& graph, ValueId value_read, const std::function<bool(ValueId)>& is_split,
                     const std::vector<bool>& has_sum) {
  const Module& module = graph.module();
  std::unordered_set<ValueId> seen;
  std::vector<std::pair<ValueId, OpId>> open = {{value_read, OpId{}}};
  while (!open.empty()) {
    const auto [value, obstacle] = open.back();
    open.pop_back();
    const OpId id = module.value(value).op;
    // An updated weight is no gradient.
    if (!id || graph.depends(value) || is_split(value) || !seen.insert(value).second) continue;
    if (reads_any(module, id, is_split)) {
      if (obstacle) return obstacle;
      continue;
    }
    const OpView op(module, id);
    const OpId next = computes(op) && !passes_addends(op, has_sum) ? id : obstacle;
    visit_reads(module, id, [&](ValueId read) { open.emplace_back(read, next); });
  }
  return {};
}

}  // namespace

void find_obstacles(UpdateGraph& graph, const std::function<bool(ValueId)>& holds_data,
                    const std::function<bool(ValueId)>& is_split) {
  const Module& module = graph.module();
  const RegionId region = graph.region();
  std::vector<UpdateGroup>& groups = graph.groups();
  const std::vector<bool> is_behind = values_behind_updates(graph), has_sum = values_with_sums(graph, is_split);
  std::vector<bool> is_data(module.value_count());
  std::vector<OpId> taint(module.value_count());
  std::vector<size_t> derived(module.value_count());  // the group of the updated states behind a value, plus one
  for (const ValueId argument : graph.arguments()) {
    is_data[argument.index] = !graph.group_of(argument) && holds_data(argument);
  }
  for (const OpId id : module.region(region).ops) {
    const OpView op(module, id);
    bool reads_data = false, reads_array = false;
    OpId tainted;
    size_t group = 0;
    visit_reads(module, id, [&](ValueId value) {
      if (value.index >= is_data.size()) return;
      // What is around a loop may be data, too.
      const bool is_outer = region_of(module, value) != region && !is_inside(module, value, region);
      reads_data = reads_data || is_data[value.index] || (is_outer && holds_data(value));
      reads_array = reads_array || module.type(value).ndim() != 0;
      tainted = tainted ? tainted : taint[value.index];
      group = group != 0 ? group : derived[value.index];
    });
    const auto results = results_of(module, id);
    const bool is_of_update = std::ranges::any_of(results, [&](ValueId result) { return is_behind[result.index]; });
    if (is_of_update && computes(op) && reads_array && !reads_data && group != 0) {
      if (!groups[group - 1].obstacle) groups[group - 1].obstacle = id;
      tainted = tainted ? tainted : id;
    }
    for (const ValueId result : results) {
      if (graph.depends(result)) {
        derived[result.index] = *graph.group_of(result) + 1;
        continue;
      }
      is_data[result.index] = reads_data;
      taint[result.index] = tainted;
      derived[result.index] = reads_data ? 0 : group;
    }
  }
  for (UpdateGroup& group : groups) {
    for (const ValueId source : group.sources) {
      if (!group.obstacle) group.obstacle = taint[source.index];
    }
    if (group.weights.empty()) continue;
    for (const std::vector<ValueId>* read : {&group.sources, &group.scales}) {
      for (const ValueId value : *read) {
        if (!group.obstacle) group.obstacle = obstacle_behind(graph, value, is_split, has_sum);
      }
    }
  }
}

}  // namespace shardwise
