// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/op_def.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/located.h"

namespace shardwise {

OpCost own_cost(const OpView& op) {
  const std::vector<TypeId> types = own_types(op);
  return op.def().cost(op, LocalTypes(op, types));
}

std::vector<AxisList> dims_by_rule(const ShardingRule& rule, size_t tensor, std::span<const AxisList> axes) {
  std::vector<AxisList> dims(rule.ndim(tensor));
  for (size_t d = 0; d < dims.size(); ++d) {
    // Factors of a dim are major to minor, and so are its axes: a dim [ij] with i on "x" and j on "y" is on {"x", "y"}.
    for (const FactorId id : rule.dim(tensor, d)) append_merged(dims[d], axes[id]);
  }
  return dims;
}

OpPlacement placement_by_rule(const ShardingRule& rule, std::span<const AxisList> axes) {
  OpPlacement placement;
  for (size_t t = 0; t < rule.tensor_count(); ++t) placement.tensors.push_back(dims_by_rule(rule, t, axes));
  for (size_t f = 0; f < axes.size(); ++f) {
    const Factor& factor = rule.factors()[f];
    if (factor.kind != FactorKind::kReduction || axes[f].empty()) continue;
    // Each device has summed its part of a reduction factor, so the result is unreduced along the factor's axes.
    placement.unreduced.insert(placement.unreduced.end(), axes[f].begin(), axes[f].end());
    placement.reducer = factor.reducer;
  }
  // In mesh order, so that equal placements compare equal: a reduction has no major and minor axes.
  placement.unreduced = sort_and_merge(placement.unreduced);
  return placement;
}

void placements_by_rule(const OpView&, const ShardingRule& rule, std::span<const AxisList> axes,
                        std::vector<OpPlacement>& found) {
  found.push_back(placement_by_rule(rule, axes));
}

namespace {

RuleKey rule_key(const OpView& op) {
  const Module& module = op.module();
  RuleKey key{.def = &op.def(), .attrs = module.op(op.id()).attrs, .types = {}, .inner_defs = {}, .inner = {}};
  key.types.reserve(op.operand_count() + op.result_count());
  for (const ValueId operand : op.operands()) key.types.push_back(module.value(operand).type);
  for (size_t i = 0; i < op.result_count(); ++i) key.types.push_back(module.value(op.result(i)).type);
  // A rule may depend on the reducer of a region.
  for (const RegionId id : op.regions()) {
    const Region& region = module.region(id);
    // Relative operands make equal regions of two ops, which have different values, one key.
    const uint32_t base = region.arguments.empty() ? 0 : region.arguments.front().index;
    for (const OpId inner : region.ops) {
      key.inner_defs.push_back(module.op(inner).def);
      key.inner.push_back(module.op(inner).attrs.index);
      for (const ValueId operand : module.operands(inner)) key.inner.push_back(operand.index - base);
    }
  }
  return key;
}

}  // namespace

const ShardingRule& sharding_rule(const OpView& op) {
  RuleCache& rules = op.module().context().rules();
  RuleKey key = rule_key(op);
  if (const ShardingRule* known = rules.find(key)) return *known;
  // Made without the cache's lock, because a rule may use the context. If two threads make one, the first stays.
  return rules.add(std::move(key), op.def().rule(op));
}

std::vector<DataFlowEdge> edges_of(const OpView& op) {
  std::vector<DataFlowEdge> edges;
  if (op.def().flow != nullptr) op.def().flow(op, edges);
  return edges;
}

void not_differentiable(VjpContext&) {}

ShardingRule no_rule(const OpView&) { return {}; }

// A program may contain an op that does not run: propagation, printing and why() still work.
void refuse_op(const OpView& op, std::string_view what) {
  fail_at<UnsupportedError>(op.module(), op.loc(),
                            error_message(op.name(), str("can be read, propagated and printed, but not ", what), {},
                                          "replace it by other ops"));
}

void apply_vjp(VjpContext& context) {
  const OpView op = context.op();
  if (op.def().vjp == nullptr) refuse_op(op, "differentiated");
  op.def().vjp(context);
}

void apply_batch(BatchContext& context) {
  const OpView op = context.op();
  if (op.def().batch == nullptr) refuse_op(op, "batched");
  op.def().batch(context);
}

// sdy's collectives take the mesh from their sharding; ours work on local values and name it.
bool is_local_collective(const OpView& op) {
  return op.def().traits.collective != CollectiveKind::kNone && op.attrs().find<Symbol>("mesh") != nullptr;
}

// Here, because module.h does not know OpDef.
std::string_view OpView::name() const { return def().name; }

}  // namespace shardwise
