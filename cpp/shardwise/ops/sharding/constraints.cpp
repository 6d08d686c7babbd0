// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/constraints.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/shared/identity.h"

namespace shardwise {
namespace {

ValueId create_annotation(Builder& builder, std::string_view name, ValueId operand, const TensorSharding& sharding) {
  Module& module = builder.module();
  verify(sharding, module.type(operand).shape);
  // A text must declare every mesh that it names.
  module.declare_mesh(sharding.mesh);
  const ValueId result = builder.create(name, {operand});
  module.value(result).sharding = builder.context().intern(sharding);
  return result;
}

// The cotangent of an annotated value gets its sharding, but not its pending reduction.
void vjp_annotation(VjpContext& context) {
  const OpView op = context.op();
  const ShardingId id = op.module().value(op.result()).sharding;
  if (!id) return context.set(0, context.cotangent());
  TensorSharding sharding = context.builder().context().sharding(id);
  // A pending sum of the value is no pending sum of its cotangent: each device's cotangent is the whole one.
  sharding.unreduced.clear();
  sharding.reducer = Reducer::kNone;
  context.set(0, create_annotation(context.builder(), op.name(), context.cotangent(), sharding));
}

// The annotation does not cover the new leading dim, so it stays open, unless vmap says what shards it.
void batch_annotation(BatchContext& context) {
  const OpView op = context.op();
  const ShardingId id = op.module().value(op.result()).sharding;
  if (!id) return context.set_result(0, context.batched(0));
  TensorSharding sharding = op.module().context().sharding(id);
  DimSharding rows{.axes = {}, .open = context.mesh_axes().empty(), .priority = {}};
  for (const std::string& name : context.mesh_axes()) {
    rows.axes.push_back(resolve(*sharding.mesh, RawAxisRef{.name = name, .sub = {}}));
  }
  sharding.dims.insert(sharding.dims.begin(), rows);
  verify(sharding, context.builder().module().type(context.batched(0)).shape);
  context.set_result(0, create_annotation(context.builder(), op.name(), context.batched(0), sharding));
}

// In a combiner region, as in Shardy's texts.
uint32_t tile_identity(TileBuilder&, const OpView&, std::span<const uint32_t> inputs) { return inputs[0]; }

constexpr OpDef annotation(std::string_view name, Traits traits, std::string_view doc) {
  OpDef def = identity_op(name, infer_identity, vjp_annotation, batch_annotation,
                          "operands sharding($sharding) attr-dict `:` result-type", doc, traits);
  def.tile = tile_identity;
  return def;
}

constexpr OpDef kConstraintOps[] = {
    annotation("sdy.sharding_constraint", {.constraint = true},
               "The identity whose result has the user's sharding (Shardy sharding_constraint)."),
    annotation("sdy.reshard", {.reshard = true}, "The identity that changes a value's sharding (Shardy reshard)."),
};
static_assert(all_complete(kConstraintOps));

}  // namespace

std::span<const OpDef> constraint_ops() { return kConstraintOps; }

ValueId create_sharding_constraint(Builder& builder, ValueId operand, const TensorSharding& sharding,
                                   std::string_view cause) {
  const ValueId made = create_annotation(builder, kConstraintOps[0].name, operand, sharding);
  Module& module = builder.module();
  if (!cause.empty()) module.set_attribute(module.value(made).op, kCauseAttr, std::string(cause));
  return made;
}

ValueId create_reshard(Builder& builder, ValueId operand, const TensorSharding& sharding) {
  return create_annotation(builder, kConstraintOps[1].name, operand, sharding);
}

}  // namespace shardwise
