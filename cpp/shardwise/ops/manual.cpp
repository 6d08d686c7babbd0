// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/manual.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/control.h"
#include "shardwise/ops/manual_verify.h"

namespace shardwise {
namespace {

// ---- regions -------------------------------------------------------------------------------------------------------

void infer_region(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  if (region.arguments.size() != op.operand_count() || region.results.size() != op.declared().size()) {
    op.fail_shape("the region must have an argument for each operand and return a value for each result",
                  str(region.arguments.size(), " arguments for ", op.operand_count(), " operands, ",
                      region.results.size(), " values for ", op.declared().size(), " results"));
  }
  results.assign(op.declared().begin(), op.declared().end());
}

void infer_named(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>("name");
  infer_region(op, results);
  const Region& region = op.module().region(op.regions()[0]);
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    if (op.module().value(region.arguments[i]).type == op.operand_type(i)) continue;
    op.fail_shape(str("argument ", i, " of the region must have the type of its operand"),
                  str(op.module().type(region.arguments[i]).text(), " for ", op.operand(i).text()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    if (op.module().value(region.results[i]).type == results[i]) continue;
    op.fail_shape(str("value ", i, " that the region returns must have the type of its result"),
                  str(op.module().type(region.results[i]).text(), " for ", op.context().type(results[i]).text()));
  }
}

void infer_manual(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<AxesAttr>("manual_axes");
  infer_region(op, results);
}

void flow_region(const OpView& op, std::vector<DataFlowEdge>& edges) {
  const Region& region = op.module().region(op.regions()[0]);
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    edges.push_back({.owner = region.arguments[i], .sources = {op.operand(i)}, .targets = {region.arguments[i]}});
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    edges.push_back({.owner = op.result(i), .sources = {region.results[i]}, .targets = {op.result(i)}});
  }
}

void flow_manual(const OpView& op, std::vector<DataFlowEdge>& edges) {
  const size_t first = edges.size();
  flow_region(op, edges);
  const auto& names = op.attrs().get<AxesAttr>("manual_axes").axes;
  for (size_t i = first; i < edges.size(); ++i) {
    DataFlowEdge& edge = edges[i];
    edge.target_inside = !op.module().value(edge.owner).op;
    edge.outside = op.module().value(edge.owner).sharding;
    if (!edge.outside) continue;
    const Mesh& mesh = *op.module().context().sharding(edge.outside).mesh;
    for (const RawAxisRef& name : names) {
      if (const std::optional<int> axis = mesh.find_axis(name.name)) edge.manual_axes.push_back(full_axis(mesh, *axis));
    }
  }
}

bool is_manual(const AxisRef& ref, const AxisList& manual_axes) {
  return std::ranges::any_of(manual_axes, [&](const AxisRef& axis) { return axis.axis == ref.axis; });
}

// ---- identities ----------------------------------------------------------------------------------------------------

void infer_identity(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  results.push_back(op.operand_type(0));
}

void infer_propagation_barrier(const InferContext& op, std::vector<TypeId>& results) {
  infer_identity(op, results);
  const int64_t direction = op.attr<IntAttr>("allowed_direction").value;
  if (direction < 0 || direction > 2) {
    op.fail_shape("allowed_direction must be NONE, FORWARD or BACKWARD", direction == 3 ? "BOTH" : str(direction),
                  "leave the barrier out for BOTH");
  }
}

ShardingRule rule_identity(const OpView& op) { return RuleBuilder(op).pointwise().build(); }
std::optional<Kernel> prepare_identity(const OpView&, const KernelTypes&) {
  return [](KernelContext& context) { context.set_result(0, context.operand(0)); };
}
void vjp_identity(VjpContext& context) { context.set(0, context.cotangent()); }
void batch_identity(BatchContext& context) {
  const OpView op = context.op();
  const ValueId operand = context.batched(0);
  const OpId batched = context.builder().create_op(op.def(), {&operand, 1}, op.module().op(op.id()).attrs);
  context.set_result(0, context.builder().module().result(batched));
}

void infer_group(const InferContext& op, std::vector<TypeId>&) {
  op.expect_operands(1);
  if (op.attr<IntAttr>("group_id").value < 0) {
    op.fail_shape("group_id must be at least 0", str(op.attr<IntAttr>("group_id").value));
  }
}
std::optional<Kernel> prepare_nothing(const OpView&, const KernelTypes&) {
  return [](KernelContext&) {};
}
void batch_group(BatchContext& context) {
  const OpView op = context.op();
  const ValueId operand = context.batched(0);
  context.builder().create_op(op.def(), {&operand, 1}, op.module().op(op.id()).attrs);
}

constexpr OpDef identity(std::string_view name, InferFn infer, std::string_view format, std::string_view doc,
                         Traits traits) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = rule_identity,
               .prepare = prepare_identity,
               .vjp = vjp_identity,
               .batch = batch_identity,
               .format = format,
               .doc = doc,
               .traits = traits};
}

constexpr OpDef named_computation() {
  OpDef def =
      region_op("sdy.named_computation", infer_named, flow_region, verify_isolated, "custom<named_computation>($name)",
                "A region with a name, such as an inlined function (Shardy named_computation).");
  def.traits.constant_preserving = true;
  return def;
}

constexpr OpDef kManualOps[] = {
    region_op("sdy.manual_computation", infer_manual, flow_manual, verify_manual_computation,
              "custom<manual_computation>($manual_axes)",
              "A region that sees local shapes along its manual axes (Shardy manual_computation)."),
    named_computation(),
    identity("sdy.data_flow_edge", infer_identity, "operands optional-sharding($sharding) attr-dict `:` result-type",
             "Stands for all values that an op with regions hands on as one (Shardy data_flow_edge).",
             {.side_effect = true, .data_flow_edge = true}),
    identity("sdy.propagation_barrier", infer_propagation_barrier,
             "operands `allowed_direction=` custom<direction>($allowed_direction) attr-dict `:` result-type",
             "The identity that shardings pass in one direction only, or in none (Shardy propagation_barrier).",
             {.barrier = true, .constant_preserving = true}),
    {.name = "sdy.sharding_group",
     .infer = infer_group,
     .rule = no_rule,
     .prepare = prepare_nothing,
     .vjp = not_differentiable,
     .batch = batch_group,
     .no_vjp_reason = "it has no result",
     .format = "operands `group_id=` $group_id attr-dict `:` operand-type",
     .doc = "Its operand is sharded like all values of the same group (Shardy sharding_group).",
     .traits = {.side_effect = true, .sharding_group = true}},
};
static_assert(std::ranges::all_of(kManualOps, [](const OpDef& def) { return def.complete(); }));

}  // namespace

std::span<const OpDef> manual_ops() { return kManualOps; }

TensorSharding seen_from_inside(const TensorSharding& outside, const AxisList& manual_axes) {
  TensorSharding inside = outside;
  // Inside, shapes are local along manual axes, so these axes no longer shard anything.
  const auto drop = [&](AxisList& axes) {
    std::erase_if(axes, [&](const AxisRef& ref) { return is_manual(ref, manual_axes); });
  };
  for (DimSharding& dim : inside.dims) drop(dim.axes);
  drop(inside.replicated);
  return inside;
}

TensorSharding seen_from_outside(const TensorSharding& inside, const TensorSharding& declared,
                                 const AxisList& manual_axes) {
  TensorSharding outside = inside;
  for (size_t d = 0; d < outside.dims.size(); ++d) {
    AxisList axes;
    for (const AxisRef& ref : declared.dims[d].axes) {
      if (is_manual(ref, manual_axes)) axes.push_back(ref);
    }
    axes.insert(axes.end(), outside.dims[d].axes.begin(), outside.dims[d].axes.end());
    outside.dims[d].axes = std::move(axes);
  }
  for (const AxisRef& ref : declared.replicated) {
    if (is_manual(ref, manual_axes)) outside.replicated.push_back(ref);
  }
  std::sort(outside.replicated.begin(), outside.replicated.end());
  return outside;
}

bool is_named_computation(const Module& module, OpId id) { return module.op(id).def == &kManualOps[1]; }

OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body) {
  std::vector<TypeId> types;
  for (const ValueId result : builder.module().region(body).results) {
    types.push_back(builder.module().value(result).type);
  }
  const AttrsId attrs = builder.context().intern(Attrs{{"name", name}});
  return builder.create_op(kManualOps[1], operands, attrs, types, {&body, 1});
}

ValueId create_data_flow_edge(Builder& builder, ValueId owner) { return builder.create(kManualOps[2], {owner}); }

}  // namespace shardwise
