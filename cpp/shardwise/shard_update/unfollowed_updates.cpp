// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/unfollowed_updates.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// Finds, in one pass, the arguments of a region that each value in it depends on.
class ArgumentsBehind {
 public:
  ArgumentsBehind(const Module& module, RegionId region, std::span<const ValueId> arguments)
      : words_((arguments.size() + kBits - 1) / kBits), behind_(module.value_count() * words_, 0) {
    for (size_t i = 0; i < arguments.size(); ++i) row(arguments[i])[i / kBits] |= uint64_t{1} << i % kBits;
    std::vector<uint64_t> sum(words_);
    for (const OpId op : module.region(region).ops) {
      std::ranges::fill(sum, 0);
      visit_reads(module, op, [&](ValueId read) {
        for (size_t i = 0; i < words_; ++i) sum[i] |= row(read)[i];
      });
      for (const ValueId result : results_of(module, op)) std::ranges::copy(sum, row(result));
    }
  }

  // `argument`: its place among the arguments.
  bool has(ValueId value, size_t argument) { return (row(value)[argument / kBits] >> argument % kBits & 1) != 0; }

 private:
  static constexpr size_t kBits = 64;
  uint64_t* row(ValueId value) { return behind_.data() + value.index * words_; }

  const size_t words_;
  std::vector<uint64_t> behind_;  // by value
};

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
  std::vector<ValueId> left;
  std::ranges::copy_if(graph.arguments(), std::back_inserter(left),
                       [&](ValueId argument) { return !graph.group_of(argument); });
  std::optional<ArgumentsBehind> behind;
  std::vector<bool> is_paired(left.size(), false);
  std::vector<UnfollowedUpdate> found;
  for (uint32_t place = 0; place < graph.results().size(); ++place) {
    const ValueId result = graph.results()[place];
    if (followed.contains(place) || module.type(result).ndim() == 0 || !module.value(result).op) continue;
    const OpId op = last_obstacle(module, result);
    // The carries of a loop are states of its body.
    if (!op || module.op(op).def->regions == Regions::kLoop) continue;
    for (size_t i = 0; i < left.size(); ++i) {
      if (is_paired[i] || module.value(left[i]).type != module.value(result).type) continue;
      // Most results are like no argument: what is behind them is not looked for.
      if (!behind) behind.emplace(module, graph.region(), left);
      if (!behind->has(result, i)) continue;
      is_paired[i] = true;
      found.push_back({left[i], op});
      break;
    }
  }
  return found;
}

}  // namespace shardwise
