// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/fusion_roles.h"

#include <algorithm>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/product_format.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {
namespace {

bool is_border(const OpView& op) {
  const OpDef& def = op.def();
  const bool runs_regions = def.regions != Regions::kNone && def.regions != Regions::kCombiner;
  return runs_regions || def.traits.collective != CollectiveKind::kNone || def.traits.reshard || op.result_count() == 0;
}

// Result i is operand i, and nothing is done: annotations, barriers.
bool is_name(const OpView& op) {
  if (op.def().traits.elementwise || op.def().traits.movement || op.operand_count() != op.result_count()) return false;
  for (size_t i = 0; i < op.result_count(); ++i) {
    if (op.operand_type(i) != op.result_type(i)) return false;
  }
  const OpCost cost = own_cost(op);
  return cost.flops() == 0 && cost.bytes() == 0;
}

// A movement that leaves the elements in their order in memory: reshape, but not transpose.
bool keeps_order(const OpView& op) {
  const ShardingRule& rule = sharding_rule(op);
  if (rule.empty() || rule.has_ranges()) return false;
  std::vector<FactorId> orders[2];
  rule.for_each_dim([&](size_t tensor, size_t, std::span<const FactorId> factors) {
    for (const FactorId factor : factors) {
      if (rule.factors()[factor].size > 1) orders[tensor].push_back(factor);
    }
  });
  return orders[0] == orders[1];
}

bool is_view(const OpView& op) {
  return (op.def().traits.movement && op.operand_count() == 1 && op.result_count() == 1) || is_widening(op);
}

// Whether a view occupies the same memory as its operand.
bool is_alias(const OpView& op) {
  return is_name(op) ||
         (!is_widening(op) && op.operand_type(0).element_quantity() == op.result_type().element_quantity() &&
          keeps_order(op));
}

// A constant of several numbers is read from memory, as an argument is. A device knows its place.
bool is_made_where_used(const OpView& op) {
  const CollectiveKind collective = op.def().traits.collective;
  if (collective != CollectiveKind::kNone && !moves_data(collective) && op.operand_count() == 0) return true;
  const auto* dense = op.attrs().find<DenseAttr>("value");
  return op.def().traits.constant_like && (dense == nullptr || dense->data.size() < 2 || dense->data.is_splat());
}

// A combiner that reduces dims of all its inputs, which have no other roles: not a scatter, not a window.
bool reduces_dims(const OpView& op, const ShardingRule& rule) {
  if (op.def().regions != Regions::kCombiner || rule.empty() || rule.has_ranges()) return false;
  bool reduces = false;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const FactorKind kind = rule.factors()[f].kind;
    if (kind != FactorKind::kPassThrough && kind != FactorKind::kReduction) return false;
    if (!rule.has_factor(0, static_cast<FactorId>(f))) return false;
    reduces = reduces || kind == FactorKind::kReduction;
  }
  return reduces;
}

// The reduced dims are the last ones, and there are several rows.
bool reduces_rows(const OpView& op, const ShardingRule& rule) {
  bool is_reduced = false;
  const Dims& shape = op.operand_type(0).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const bool reduces = rule.factors()[rule.dim(0, d)[0]].kind == FactorKind::kReduction;
    if (is_reduced && !reduces) return false;
    is_reduced = reduces;
  }
  return op.result_type().element_quantity() > 1;
}

}  // namespace

FusionRoles::FusionRoles(const Module& module)
    : module_(module),
      roles_(module.op_count(), FusionRole::kBorder),
      viewed_(module.value_count()),
      before_aliases_(module.value_count()) {
  for (uint32_t i = 0; i < viewed_.size(); ++i) viewed_[i].value = before_aliases_[i] = ValueId{i};
  walk(module, [&](OpId id) {
    const OpView op(module, id);
    roles_[id.index] = find(op);
    if (of(id) == FusionRole::kView) add_view(op);
  });
}

void FusionRoles::add_view(const OpView& op) {
  const bool aliases = is_alias(op);
  for (size_t i = 0; i < op.result_count(); ++i) {
    const ValueId from = op.operand(i), to = op.result(i);
    ViewedValue viewed = viewed_[from.index];
    viewed.is_widened = viewed.is_widened || module_.type(from).dtype != module_.type(to).dtype;
    const int64_t before = module_.type(from).element_quantity(), after = module_.type(to).element_quantity();
    if (after < before) viewed.kind = ViewKind::kPart;
    if (after > before && viewed.kind == ViewKind::kWhole) viewed.kind = ViewKind::kEnlarged;
    viewed_[to.index] = viewed;
    if (aliases) before_aliases_[to.index] = before_aliases_[from.index];
  }
}

FusionRole FusionRoles::find(const OpView& op) const {
  if (is_made_where_used(op)) return FusionRole::kFree;
  if (is_border(op)) return FusionRole::kBorder;
  const bool is_elementwise = op.def().traits.elementwise && op.result_count() == 1;
  if (is_elementwise && std::ranges::all_of(op.operands(), [&](ValueId value) { return is_free(value); })) {
    return FusionRole::kFree;
  }
  if (is_view(op) || is_name(op)) return FusionRole::kView;
  if (is_elementwise) return FusionRole::kElementwise;
  const ShardingRule& rule = sharding_rule(op);
  if (is_contraction(op.def(), rule)) return FusionRole::kProduct;
  if (!reduces_dims(op, rule)) return FusionRole::kOther;
  return reduces_rows(op, rule) ? FusionRole::kRowReduction : FusionRole::kReduction;
}

bool FusionRoles::is_free(ValueId value) const {
  const OpId maker = module_.value(viewed(value).value).op;
  return maker && of(maker) == FusionRole::kFree;
}

bool FusionRoles::has_batch(OpId product) const {
  const OpView op(module_, product);
  const ShardingRule& rule = sharding_rule(op);
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const auto id = static_cast<FactorId>(f);
    const bool in_all = rule.has_factor(0, id) && rule.has_factor(1, id) && rule.has_factor(rule.result_tensor(0), id);
    if (in_all && rule.factors()[f].size > 1) return true;
  }
  return false;
}

}  // namespace shardwise
