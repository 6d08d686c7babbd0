// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/costs.h"

#include <algorithm>
#include <limits>

#include "shardwise/analysis/fuse.h"
#include "shardwise/analysis/product_format.h"
#include "shardwise/choice/compute_price.h"
#include "shardwise/cost/hardware_json.h"

namespace shardwise {
namespace {

// Where messages take time by themselves, that of a chain is in its price.
bool has_latency(const Hardware& hardware) {
  return std::ranges::any_of(hardware.tiers, [](const Tier& tier) { return tier.latency_ps > 0; });
}

bool is_movement_of_one(const OpView& op) { return op.def().traits.movement && op.operand_count() == 1; }

}  // namespace

GroupBorders::GroupBorders(const Module& module, const Hardware& hardware) : borders_(module.op_count()) {
  Fusion fusion = fuse(module, {.fused_attention = hardware.fused_attention});
  group_of_ = std::move(fusion.group_of);
  const auto add = [&](const std::vector<BorderAccess>& accesses) {
    for (const BorderAccess& access : accesses) {
      if (access.tensor < kMost) borders_[access.op.index] |= uint64_t{1} << access.tensor;
    }
  };
  for (const FusionGroup& group : fusion.groups) {
    // A view that leaves the program is copied there, however it is computed.
    if (group.ops.size() == 1 && is_movement_of_one(OpView(module, group.ops[0]))) {
      group_of_[group.ops[0].index] = Fusion::kNoGroup;
      continue;
    }
    add(group.reads);
    add(group.writes);
  }
}

size_t HashOfCostKey::operator()(const CostKey& key) const {
  size_t hash = key.size();
  for (const uint64_t word : key) hash = hash_combine(hash, static_cast<size_t>(word));
  return hash;
}

// By time, the bytes only break ties, and should not jump where the devices become more than the elements.
Costs::Costs(const Module& module, const CompileOptions& options)
    : hardware_(hardware_called(options.hardware)),
      may_chain_(options.is_by_bytes() || has_latency(*hardware_)),
      counts_mean_(!options.is_by_bytes()),
      planner_(module.context(), options),
      dry_runs_(module, *hardware_),
      borders_(module, *hardware_) {}

Cost Costs::reshard(TypeId type, PlacementId from, PlacementId to) {
  if (from == to) return {};
  const ReshardPrice& price = known_price(type, from, to);
  return {.ps = are_times() ? static_cast<double>(price.price.ps) : 0,
          .bytes = counts_mean_ ? price.mean_bytes : price.bytes};
}

Price Costs::reshard_price(TypeId type, PlacementId from, PlacementId to) {
  return from == to ? Price{} : known_price(type, from, to).price;
}

const ReshardPrice& Costs::known_price(TypeId type, PlacementId from, PlacementId to) {
  const auto [found, is_new] = reshards_.try_emplace({type, from, to});
  if (is_new) found->second = planner_.price(type, from, to, hardware_);
  return found->second;
}

void Costs::append_to_key(const OpView& op, const ShardingRule& rule, CostKey& key) const {
  const auto constants = op.def().methods.empty() ? std::vector<std::pair<size_t, AttrsId>>{} : constant_operands(op);
  for (const auto& [operand, attrs] : constants) {
    key.push_back(operand);
    key.push_back(attrs.index);
  }
  key.push_back(borders_.has_group(op.id()) ? 1 : 0);
  key.push_back(borders_.bits(op.id()));
  // A product is computed in the format of its operands before they were widened.
  const auto is_summed = [](const Factor& factor) { return factor.kind == FactorKind::kReduction; };
  if (op.operand_count() != 2 || std::ranges::none_of(rule.factors(), is_summed)) return;
  for (const ValueId operand : op.operands()) {
    key.push_back(static_cast<uint64_t>(op.module().type(before_widening(op.module(), operand)).dtype));
  }
}

Cost Costs::compute(const Computed& computed) {
  if (!computed.choice.has_own_partition()) {
    return {.ps = are_times() ? static_cast<double>(compute_price(computed).ps) : 0, .bytes = 0};
  }
  const MethodCost& cost = method(computed);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // The time of a chain grows with the devices.
  if (!cost.is_possible || (cost.is_chain && !may_chain_)) return {.ps = kNever, .bytes = kNever};
  return {.ps = are_times() ? static_cast<double>(cost.price.ps) : 0, .bytes = cost.bytes};
}

Price Costs::compute_price(const Computed& computed) {
  const auto& [op, rule, choice, is_moved, is_used] = computed;
  if (choice.has_own_partition()) return method(computed).price;
  if (!borders_.has_group(op.id())) return {};
  uint64_t in_memory = borders_.bits(op.id());
  for (size_t i = 0; i < is_moved.size() && i < 64; ++i) in_memory |= uint64_t{is_moved[i]} << i;
  CostKey key{reinterpret_cast<uintptr_t>(&rule), in_memory};
  for (const std::vector<PlacementId>* tensors : {&choice.operands, &choice.results}) {
    for (const PlacementId id : *tensors) key.push_back(id.index);
  }
  append_to_key(op, rule, key);
  const auto [found, is_new] = computed_.try_emplace(std::move(key));
  if (is_new) found->second = shardwise::compute_price(op, choice, *hardware_, in_memory);
  return found->second;
}

const MethodCost& Costs::method(const Computed& computed) {
  std::vector<PlacementId> tensors = computed.choice.operands;
  tensors.insert(tensors.end(), computed.choice.results.begin(), computed.choice.results.end());
  return dry_runs_.cost(computed.op, computed.rule, *computed.choice.method, tensors, computed.is_used);
}

}  // namespace shardwise
