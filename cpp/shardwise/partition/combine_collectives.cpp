// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/combine_collectives.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/analysis/live_bytes.h"
#include "shardwise/analysis/schedule/region_times.h"
#include "shardwise/cost/hardware_json.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/partition/combine/combined_groups.h"

namespace shardwise {
namespace {

// Divisors of the option's bytes. If groups of a region take longer or need more memory, smaller ones are tried.
constexpr int64_t kShares[] = {1, 16, 256};

// One text for each operand, if any has one.
void set_causes(Attrs& attrs, const Module& module, std::span<const OpId> ops) {
  AttrArray causes;
  bool has_cause = false;
  for (const OpId op : ops) {
    const std::string_view cause = collective_cause(OpView(module, op));
    has_cause = has_cause || !cause.empty();
    causes.emplace_back(std::string(cause));
  }
  if (has_cause) attrs.set(kCauseAttr, std::move(causes));
}

void write_group(Rewrite& rewrite, Module& module, const CombinedGroup& group, OpId next) {
  const OpId first = group.ops.front();
  if (group.ops.size() == 1) return rewrite.move(first, {group.region, next});
  Attrs attrs = module.attrs(first);
  set_causes(attrs, module, group.ops);
  std::vector<ValueId> operands;
  for (const OpId op : group.ops) operands.push_back(module.operands(op)[0]);
  const OpDef& def = *module.op(first).def;
  const LocId loc = module.op(first).loc;
  const OpId made = rewrite.insert({group.region, next}, loc, [&](Builder& builder) {
    builder.set_loc(loc, module.op(first).origin);
    return builder.create_op(def, operands, module.context().intern(attrs));
  });
  for (uint32_t i = 0; i < group.ops.size(); ++i) {
    const ValueId result = module.result(made, i);
    rewrite.hand_over(module.result(group.ops[i]), result);
    module.value(result).loc = module.op(group.ops[i]).loc;
  }
  for (const OpId op : group.ops) rewrite.erase(op);
}

// `groups` of a region stand in the order in which they were formed: of two at one place, the later one may need the first.
void write_groups(Module& module, std::vector<CombinedGroup> groups) {
  std::ranges::stable_sort(groups, {}, &CombinedGroup::before);
  std::unordered_set<OpId> taken;
  for (const CombinedGroup& group : groups) taken.insert(group.ops.begin(), group.ops.end());
  std::vector<OpId> next(groups.size());
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<OpId>& ops = module.region(groups[g].region).ops;
    size_t place = groups[g].before;
    while (place < ops.size() && taken.contains(ops[place])) ++place;
    if (place < ops.size()) next[g] = ops[place];
  }
  Rewrite rewrite(module);
  for (size_t g = 0; g < groups.size(); ++g) write_group(rewrite, module, groups[g], next[g]);
}

class Combiner {
 public:
  Combiner(const Module& module, const CompileOptions& options)
      : module_(module),
        options_(options),
        hardware_(hardware_called(options.hardware)),
        times_(module, *hardware_, TimeMode::kEstimate) {}

  // None if nothing is combined.
  std::optional<Module> run() {
    const std::vector<RegionId> regions = regions_to_combine(module_);
    const MemoryUse use = live_bytes(module_, options_.donated);
    MemoryHeadroom headroom(module_, use);
    const UseLists uses(module_);
    std::unordered_map<RegionId, size_t> shares;
    while (true) {
      std::vector<CombinedGroup> groups;
      for (const RegionId region : regions) {
        const size_t share = shares[region];
        if (share == std::size(kShares)) continue;
        const auto found = combined_groups(module_, uses, region, times_.region(region), *hardware_, headroom,
                                           options_.combine_bytes / kShares[share]);
        groups.insert(groups.end(), found.begin(), found.end());
      }
      if (groups.empty()) return std::nullopt;
      Module made = module_;
      write_groups(made, groups);
      if (lower_shares(made, groups, use.peak_bytes, shares)) continue;
      for (const CombinedGroup& group : groups) fewer_ += std::ssize(group.ops) - 1;
      return made;
    }
  }

  int64_t fewer() const { return fewer_; }  // collectives

 private:
  // Returns whether the groups of a region are worse than single collectives, and must be smaller.
  bool lower_shares(const Module& made, const std::vector<CombinedGroup>& groups, int64_t peak,
                    std::unordered_map<RegionId, size_t>& shares) {
    const bool takes_more = live_bytes(made, options_.donated).peak_bytes > peak;
    RegionTimer after(made, *hardware_, TimeMode::kEstimate);
    std::unordered_set<RegionId> worse;
    for (const CombinedGroup& group : groups) {
      if (takes_more || is_longer(after.region(group.region), times_.region(group.region))) worse.insert(group.region);
    }
    for (const RegionId region : worse) ++shares[region];
    return !worse.empty();
  }

  static bool is_longer(const RegionTimes& after, const RegionTimes& before) {
    return after.length > before.length || after.further > before.further;
  }

  const Module& module_;
  const CompileOptions& options_;
  const HardwarePtr hardware_;
  RegionTimer times_;  // of the module as it was
  int64_t fewer_ = 0;
};

}  // namespace

Module combine_collectives(Module module, PassContext& context) {
  if (context.options.combine_bytes == 0 || regions_to_combine(module).empty()) return module;
  Combiner combiner(module, context.options);
  std::optional<Module> made = combiner.run();
  context.counters.add("combine_collectives.fewer", combiner.fewer());
  return made ? *std::move(made) : std::move(module);
}

}  // namespace shardwise
