// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/live_ranges.h"

#include <algorithm>
#include <ranges>
#include <span>
#include <unordered_set>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

LiveRanges::LiveRanges(const Module& module, const ElementwiseChains& chains)
    : module_(module),
      chains_(chains),
      effects_(module, UnusedConstraints::kRemove),
      in_chain_(module.op_count(), false),
      owner_(module.value_count(), 0),
      used_later_(module.value_count(), false),
      needed_(module.value_count(), false) {
  for (uint32_t i = 0; i < module.value_count(); ++i) homes_.push_back(ValueId{i});
  for (const auto& [root, chain] : chains.by_root) {
    for (const OpId op : chain.ops) in_chain_[op.index] = true;
  }
  for (const Function& function : module.functions) add_block(function.body);
  for (const Function& function : module.functions) {
    find_dead(function.body, module.region(function.body).arguments);
  }
  blocks_.at(module.main().body).dead.clear();  // the caller holds its arguments anyway
}

std::vector<ValueId> LiveRanges::homes(std::span<const ValueId> values) const {
  std::vector<ValueId> found;
  for (const ValueId value : values) found.push_back(home(value));
  return found;
}

void LiveRanges::add_block(RegionId id) {
  const Region& region = module_.region(id);
  LiveBlock block;
  for (const OpId op_id : region.ops) {
    const OpView op(module_, op_id);
    const auto chain = chains_.by_root.find(op_id);
    // A chain runs where its last op is: by then all its inputs exist.
    if (in_chain_[op_id.index] && chain == chains_.by_root.end()) continue;
    LiveStep step{.op = op_id, .inputs = {}, .outputs = {}};
    if (chain != chains_.by_root.end()) {
      step.chain = &chain->second;
      step.inputs = homes(chain->second.inputs);
    } else if (op.def().regions == Regions::kLoop) {
      step.inputs = enter_loop(op);
    } else {
      step.inputs = homes(op.operands());
    }
    for (size_t i = 0; i < op.result_count(); ++i) step.outputs.push_back(home(op.result(i)));
    if (op.def().is_control_flow()) {
      for (const RegionId inner : op.regions()) add_block(inner);
      add_captures(step, {op.regions().begin(), op.regions().end()});
    }
    block.steps.push_back(std::move(step));
  }
  block.results = homes(region.results);
  drop_unneeded(block);
  blocks_.emplace(id, std::move(block));
}

// Gives the carries their homes. Returns the initial values of the carries, then what a scan reads rows of.
std::vector<ValueId> LiveRanges::enter_loop(const OpView& op) {
  const LoopParts parts = loop_parts(op);
  std::vector<ValueId> inputs;
  for (const LoopParts::Carry& carry : parts.carries) {
    homes_[carry.argument.index] = carry.result;
    if (carry.tested) homes_[carry.tested.index] = carry.result;
    inputs.push_back(home(carry.entry));
  }
  for (const LoopParts::Input& input : parts.inputs) {
    inputs.push_back(home(input.stack));
    if (input.border) inputs.push_back(home(input.border));
  }
  return inputs;
}

void LiveRanges::add_captures(LiveStep& step, const std::vector<RegionId>& regions) const {
  std::unordered_set<ValueId> known(step.outputs.begin(), step.outputs.end());
  for (const RegionId region : regions) {
    for (const ValueId argument : module_.region(region).arguments) known.insert(home(argument));
  }
  const auto read = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      if (known.insert(value).second) step.inputs.push_back(value);
    }
  };
  for (const RegionId region : regions) {
    const LiveBlock& block = of(region);
    for (const LiveStep& inner : block.steps) {
      read(inner.inputs);
      known.insert(inner.outputs.begin(), inner.outputs.end());
    }
    read(block.results);
  }
}

// Removes steps whose results nothing reads, such as constants that went into chains.
void LiveRanges::drop_unneeded(LiveBlock& block) {
  std::vector<LiveStep> kept;
  const auto need = [&](const std::vector<ValueId>& values, bool needed) {
    for (const ValueId value : values) needed_[value.index] = needed;
  };
  need(block.results, true);
  for (LiveStep& step : block.steps | std::views::reverse) {
    const bool is_needed = std::ranges::any_of(step.outputs, [&](ValueId value) { return needed_[value.index]; });
    if (!is_needed && !effects_(step.op)) continue;
    need(step.inputs, true);
    kept.push_back(std::move(step));
  }
  // Another block has its own needs.
  need(block.results, false);
  for (const LiveStep& step : kept) need(step.inputs, false);
  std::ranges::reverse(kept);
  block.steps = std::move(kept);
}

void LiveRanges::own(const std::vector<ValueId>& values) {
  for (const ValueId value : values) {
    owner_[value.index] = block_;
    used_later_[value.index] = false;
  }
}

void LiveRanges::use(ValueId value, std::vector<ValueId>& dead) {
  // A value of another block is a capture: a loop reads it again in the next trip.
  if (owner_[value.index] == block_ && !used_later_[value.index]) dead.push_back(value);
  used_later_[value.index] = true;
}

void LiveRanges::find_dead(RegionId region, const std::vector<ValueId>& given) {
  ++block_;
  LiveBlock& block = blocks_.at(region);
  own(given);
  for (const LiveStep& step : block.steps) own(step.outputs);
  for (const ValueId result : block.results) used_later_[result.index] = true;
  // Backward, so that the first use found is the last use in the run.
  for (LiveStep& step : block.steps | std::views::reverse) {
    for (const ValueId output : step.outputs) use(output, step.dead);
    for (const ValueId input : step.inputs) use(input, step.dead);
  }
  for (const ValueId value : given) use(value, block.dead);
  for (const LiveStep& step : block.steps) find_dead_inside(step);
}

// A body may free the carries and the rows that it reads, and a branch what is dead after it: it runs once.
void LiveRanges::find_dead_inside(const LiveStep& step) {
  const OpView op(module_, step.op);
  if (op.def().regions == Regions::kBranches) {
    std::vector<ValueId> last;
    for (const ValueId value : step.dead) {
      if (std::ranges::find(step.inputs, value) != step.inputs.end()) last.push_back(value);
    }
    for (const RegionId branch : op.regions()) find_dead(branch, last);
  }
  if (op.def().regions != Regions::kLoop) return;
  const LoopParts parts = loop_parts(op);
  if (parts.condition) find_dead(parts.condition, {});
  std::vector<ValueId> given;
  for (const LoopParts::Carry& carry : parts.carries) given.push_back(carry.result);
  for (const LoopParts::Input& input : parts.inputs) given.push_back(home(input.row));
  find_dead(parts.body, given);
}

}  // namespace shardwise
