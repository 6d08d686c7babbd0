// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/constraints.h"

#include <algorithm>

namespace shardwise {
namespace {

void infer_identity(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  results.push_back(op.operand_type(0));
}

ShardingRule rule_identity(const OpView& op) { return RuleBuilder(op).pointwise().build(); }

void kernel_identity(KernelContext& context) { context.set_result(0, context.operand(0)); }

ValueId create_annotation(Builder& builder, std::string_view name, ValueId operand, const TensorSharding& sharding) {
  Module& module = builder.module();
  verify(sharding, module.type(operand).shape);
  module.declare_mesh(sharding.mesh);
  const ValueId result = builder.create(name, {operand});
  module.value(result).sharding = builder.context().intern(sharding);
  return result;
}

// The cotangent of an annotated value is laid out like the value; a pending reduction is not inherited.
void vjp_annotation(VjpContext& context) {
  const OpView op = context.op();
  const ShardingId id = op.module().value(op.result()).sharding;
  if (!id) return context.set(0, context.cotangent());
  TensorSharding sharding = context.builder().context().sharding(id);
  sharding.unreduced.clear();
  sharding.reducer = Reducer::kNone;
  context.set(0, create_annotation(context.builder(), op.name(), context.cotangent(), sharding));
}

// The new leading dim is left open: nothing was said about it.
void batch_annotation(BatchContext& context) {
  const OpView op = context.op();
  const ShardingId id = op.module().value(op.result()).sharding;
  if (!id) return context.set_result(0, context.batched(0));
  TensorSharding sharding = op.module().context().sharding(id);
  sharding.dims.insert(sharding.dims.begin(), DimSharding{.axes = {}, .open = true, .priority = {}});
  context.set_result(0, create_annotation(context.builder(), op.name(), context.batched(0), sharding));
}

constexpr OpDef annotation(std::string_view name, Traits traits, std::string_view doc) {
  return OpDef{.name = name,
               .infer = infer_identity,
               .rule = rule_identity,
               .kernel = kernel_identity,
               .vjp = vjp_annotation,
               .batch = batch_annotation,
               .format = "operands sharding($sharding) attr-dict `:` result-type",
               .doc = doc,
               .traits = traits};
}

constexpr OpDef kConstraintOps[] = {
    annotation("sdy.sharding_constraint", {.constraint = true},
               "The identity whose result has the user's sharding (Shardy sharding_constraint)."),
    annotation("sdy.reshard", {.reshard = true}, "The identity that changes a value's sharding (Shardy reshard)."),
};
static_assert(kConstraintOps[0].complete() && kConstraintOps[1].complete());

}  // namespace

std::span<const OpDef> constraint_ops() { return kConstraintOps; }

ValueId create_sharding_constraint(Builder& builder, ValueId operand, const TensorSharding& sharding) {
  return create_annotation(builder, kConstraintOps[0].name, operand, sharding);
}

void annotate(Module& module, ValueId value, const TensorSharding& sharding) {
  const OpId op = module.value(value).op;
  const RegionId region = op ? module.op(op).parent : module.value(value).region;
  if (!op && !module.region(region).op) {
    verify(sharding, module.type(value).shape);
    module.declare_mesh(sharding.mesh);
    module.value(value).sharding = module.context().intern(sharding);
    return;
  }
  Builder builder(module, region, op ? module.op(op).loc : module.value(value).loc);
  const ValueId constrained = create_sharding_constraint(builder, value, sharding);
  const OpId constraint = module.value(constrained).op;
  std::vector<OpId>& ops = module.region(region).ops;
  ops.pop_back();
  ops.insert(op ? std::next(std::ranges::find(ops, op)) : ops.begin(), constraint);
  for (uint32_t i = 1; i < module.op_count(); ++i) {
    if (OpId{i} == constraint) continue;
    for (ValueId& operand : module.operands(OpId{i})) operand = operand == value ? constrained : operand;
  }
  for (uint32_t i = 1; i < module.region_count(); ++i) {
    for (ValueId& result : module.region(RegionId{i}).results) result = result == value ? constrained : result;
  }
}

ValueId create_reshard(Builder& builder, ValueId operand, const TensorSharding& sharding) {
  return create_annotation(builder, kConstraintOps[1].name, operand, sharding);
}

}  // namespace shardwise
