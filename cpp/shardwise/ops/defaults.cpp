// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/defaults.h"

#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/ops/layout.h"
#include "shardwise/ops/reduce.h"

namespace shardwise {
namespace {

bool is_uneven_along(const LocalLayout& layout, const ShardingRule& rule, size_t tensor, FactorId factor) {
  for (size_t d = 0; d < layout.dims.size(); ++d) {
    if (!layout.dims[d].uneven()) continue;
    for (const FactorId id : rule.dim(tensor, d)) {
      if (id == factor) return true;
    }
  }
  return false;
}

ValueId masked_for_reductions(PartitionContext& context, size_t operand) {
  const ShardingRule& rule = context.rule();
  ValueId value = context.operand(operand);
  if (rule.empty()) return value;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    const Factor& factor = rule.factors()[f];
    if (factor.kind != FactorKind::kReduction) continue;
    if (!is_uneven_along(context.operand_layout(operand), rule, operand, id)) continue;
    const Scalar neutral = neutral_element(factor.reducer, context.op().operand_type(operand).dtype);
    value = context.masked_operand(operand, id, neutral);
  }
  return value;
}

// `values` maps what the region uses from outside, and gets its own values.
RegionId copy_region(const Module& source, RegionId region, Module& target,
                     std::unordered_map<ValueId, ValueId>& values) {
  const RegionId copy = target.add_region();
  // By value: `source` may be `target`, whose arrays grow here.
  const Region original = source.region(region);
  for (const ValueId argument : original.arguments) {
    values[argument] = target.add_argument(copy, source.value(argument).type, source.value(argument).loc);
  }
  const auto mapped = [&](ValueId value) {
    const auto it = values.find(value);
    return it == values.end() ? value : it->second;
  };
  for (const OpId id : original.ops) {
    const OpView op(source, id);
    std::vector<ValueId> operands;
    for (const ValueId operand : op.operands()) operands.push_back(mapped(operand));
    std::vector<TypeId> types;
    for (size_t i = 0; i < op.result_count(); ++i) types.push_back(source.value(op.result(i)).type);
    std::vector<RegionId> regions;
    for (const RegionId nested : std::vector<RegionId>(op.regions().begin(), op.regions().end())) {
      regions.push_back(copy_region(source, nested, target, values));
    }
    const OpId made = target.append_op(copy, op.def(), operands, source.op(id).attrs, types, op.loc(), regions);
    for (size_t i = 0; i < types.size(); ++i) values[op.result(i)] = target.result(made, static_cast<uint32_t>(i));
  }
  for (const ValueId result : original.results) target.region(copy).results.push_back(mapped(result));
  return copy;
}

}  // namespace

std::vector<RegionId> copy_regions(const OpView& op, Module& target) {
  std::vector<RegionId> regions;
  std::unordered_map<ValueId, ValueId> values;
  for (const RegionId region : op.regions()) regions.push_back(copy_region(op.module(), region, target, values));
  return regions;
}

void partition_by_rule(PartitionContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) operands.push_back(masked_for_reductions(context, i));
  std::vector<TypeId> types;
  for (size_t i = 0; i < op.result_count(); ++i) types.push_back(context.local_result_type(i));
  const std::vector<RegionId> regions = copy_regions(op, builder.module());
  const OpId local = builder.create_op(op.def(), operands, op.module().op(op.id()).attrs, types, regions);
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueId result = builder.module().result(local, static_cast<uint32_t>(i));
    context.set_result(i, result, result_padding(context.result_layout(i)));
  }
}

OpCost cost_by_rule(const OpView& op) {
  OpCost cost;
  for (size_t i = 0; i < op.operand_count(); ++i) cost.bytes += static_cast<double>(op.operand_type(i).nbytes());
  for (size_t i = 0; i < op.result_count(); ++i) cost.bytes += static_cast<double>(op.result_type(i).nbytes());
  const ShardingRule& rule = op.module().context().sharding_rule(op);
  if (rule.empty()) {
    for (size_t i = 0; i < op.result_count(); ++i) cost.flops += static_cast<double>(op.result_type(i).size());
    return cost;
  }
  cost.flops = 1;
  bool contracts = false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const Factor& factor = rule.factors()[f];
    cost.flops *= static_cast<double>(factor.size);
    size_t carriers = 0;
    for (size_t t = 0; t < rule.operand_count(); ++t) carriers += rule.has_factor(t, static_cast<FactorId>(f)) ? 1 : 0;
    contracts = contracts || (factor.kind == FactorKind::kReduction && carriers > 1);
  }
  if (contracts) cost.flops *= 2;
  return cost;
}

}  // namespace shardwise
