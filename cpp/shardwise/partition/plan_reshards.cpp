// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/plan_reshards.h"

#include "shardwise/base/error.h"
#include "shardwise/ir/rewrite.h"

namespace shardwise {
namespace {

const TensorSharding* find_sharding(const Module& module, ValueId value) {
  const ShardingId id = module.value(value).sharding;
  return id ? &module.context().sharding(id) : nullptr;
}

Attribute axes_per_dim(const Mesh& mesh, const std::vector<AxisList>& dims) {
  AxesPerDimAttr attr;
  for (const AxisList& axes : dims) attr.dims.push_back(to_raw(mesh, axes));
  return attr;
}

struct CollectiveForm {
  std::string_view name;
  Attrs attrs;
};

CollectiveForm form_of(const Mesh& mesh, const ReshardStep& step) {
  switch (step.move) {
    case ReshardMove::kSlice: return {"sdy.all_slice", {{"slicing_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kAllGather: return {"sdy.all_gather", {{"gathering_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kReduceScatter:
      return {"sdy.reduce_scatter", {{"reduce_scatter_axes", axes_per_dim(mesh, step.dim_axes)}}};
    case ReshardMove::kAllReduce: {
      const AxisList axes = sort_and_merge(step.reduced);
      return {"sdy.all_reduce", {{"reduction_axes", AxesAttr{to_raw(mesh, axes)}}}};
    }
    case ReshardMove::kPermute: return {"sdy.collective_permute", {}};
    case ReshardMove::kAllToAll: break;
  }
  AttrArray params;
  for (const DimMove& move : step.dim_moves) {
    params.push_back(AttrDict{{{"axes", AxesAttr{to_raw(mesh, move.axes)}},
                               {"from_dim", IntAttr{move.from_dim}},
                               {"to_dim", IntAttr{move.to_dim}}}});
  }
  return {"sdy.all_to_all", {{"params", std::move(params)}}};
}

TensorSharding sharding_of(const Placement& placement, const MeshPtr& mesh, Reducer reducer) {
  TensorSharding sharding{.mesh = mesh, .dims = {}, .replicated = {}, .unreduced = placement.unreduced};
  for (const AxisList& axes : placement.dims) sharding.dims.push_back({axes, false, {}});
  sharding.reducer = placement.unreduced.empty() ? Reducer::kNone : reducer;
  return sharding;
}

bool has_default_blocks(const Placement& placement, DimSpan shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (placement.blocks[d] != ceil_div(shape[d], product(placement.dims[d]))) return false;
  }
  return true;
}

// Emits the steps of the plan for one reshard; returns the resharded value.
ValueId emit(Builder& builder, ReshardPlanner& planner, const OpView& reshard) {
  Module& module = builder.module();
  const ValueId operand = reshard.operand(0);
  const Value result = module.value(reshard.result());
  const ReshardPlan& plan = planner.plan(result.type, module.value(operand).sharding, result.sharding);
  const TensorSharding* from_sharding = find_sharding(module, operand);
  const TensorSharding* to_sharding = find_sharding(module, reshard.result());
  const MeshPtr mesh = to_sharding != nullptr ? to_sharding->mesh : from_sharding->mesh;
  const Reducer reducer = from_sharding == nullptr ? Reducer::kNone : from_sharding->pending_reducer();
  const std::string* cause = reshard.attrs().find<std::string>(kCauseAttr);
  const Dims& shape = module.context().type(result.type).shape;
  ValueId value = operand;
  for (const ReshardStep& step : plan.steps) {
    CollectiveForm form = form_of(*mesh, step);
    if (cause != nullptr) form.attrs.set(kCauseAttr, *cause);
    value = builder.create(form.name, {value}, form.attrs);
    module.value(value).sharding = module.context().intern(sharding_of(step.after, mesh, reducer));
    module.value(value).origin = result.origin;
    // Later steps and localization must use the same blocks as the plan.
    if (!has_default_blocks(step.after, shape)) module.set_blocks(value, step.after.blocks);
  }
  return value;
}

}  // namespace

size_t ReshardPlanner::KeyHash::operator()(const Key& key) const {
  return hash_combine(hash_combine(key.type.index, key.from.index), key.to.index);
}

const ReshardPlan& ReshardPlanner::plan(TypeId type, ShardingId from, ShardingId to) {
  std::unique_ptr<ReshardPlan>& cached = plans_[{type, from, to}];
  if (cached) return *cached;
  cached = std::make_unique<ReshardPlan>();
  // Ids are unique per sharding, so equal ids need no plan.
  if (from == to) return *cached;
  const TensorType& tensor = context_.type(type);
  const MeshPtr& mesh = context_.sharding(from ? from : to).mesh;
  const MeshPtr& to_mesh = context_.sharding(to ? to : from).mesh;
  if (mesh != to_mesh && !mesh->same_devices(*to_mesh)) {
    fail<ShardingError>("reshard", "both shardings must be of one mesh, or of meshes with the same axes and devices",
                        mesh->reference() + " and " + to_mesh->reference(), "use one mesh in all annotations");
  }
  const auto placement = [&](ShardingId id) {
    if (id) return placement_of(context_.sharding(id), tensor.shape);
    return placement_of(TensorSharding::fully_replicated(mesh, tensor.ndim()), tensor.shape);
  };
  *cached = search_reshard({.mesh = mesh.get(),
                            .shape = tensor.shape,
                            .item_size = item_size(tensor.dtype),
                            .from = placement(from),
                            .to = placement(to),
                            .align_axes = effort_ == Effort::kBest});
  states_ += cached->states;
  return *cached;
}

Module plan_reshards(Module module, PassContext& context) {
  ReshardPlanner planner(module.context());
  Rewrite rewrite(module);
  const std::vector<OpId> ops = module.region(module.main().body).ops;
  for (const OpId id : ops) {
    const OpView op(module, id);
    if (!op.def().traits.reshard) continue;
    const ValueId moved = rewrite.insert(rewrite.before(id), op.loc(), [&](Builder& builder) {
      builder.set_loc(op.loc(), module.op(id).origin);
      return emit(builder, planner, op);
    });
    rewrite.replace(id, std::span(&moved, 1));
  }
  rewrite.commit();
  context.counters.add("plan_reshards.states", planner.states());
  if (module.stage == Stage::kAssigned) module.stage = Stage::kResharded;
  return module;
}

}  // namespace shardwise
