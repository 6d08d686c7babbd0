// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/manual_computation.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/sharding/manual_computation_verify.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

void infer_region(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_regions(1);
  const Region& region = op.module().region(op.regions()[0]);
  // A region that captured values would have more arguments than operands.
  if (region.arguments.size() != op.operand_count() || region.results.size() != op.declared().size()) {
    op.fail_shape("the region must have an argument for each operand and return a value for each result",
                  str(region.arguments.size(), " arguments for ", op.operand_count(), " operands, ",
                      region.results.size(), " values for ", op.declared().size(), " results"));
  }
  infer_declared(op, results);
}

void infer_named(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<std::string>("name");
  infer_region(op, results);
  const Region& region = op.module().region(op.regions()[0]);
  // Unlike a manual computation, a named one changes no shapes.
  const auto expect_type = [&](ValueId inside, TypeId type, std::string_view what, size_t i, std::string_view rest) {
    if (op.module().value(inside).type == type) return;
    op.fail_shape(str(what, i, rest), str(op.module().type(inside).text(), " for ", op.context().type(type).text()));
  };
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    expect_type(region.arguments[i], op.operand_type(i), "argument ", i,
                " of the region must have the type of its operand");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    expect_type(region.results[i], results[i], "value ", i,
                " that the region returns must have the type of its result");
  }
}

// The types of arguments are not compared here: they are those of shards, which follow from shardings. Those are
// columns, which a new op does not have yet; verify_manual_computation compares them.
void infer_manual(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<AxesAttr>("manual_axes");
  infer_region(op, results);
}

void flow_region(const OpView& op, std::vector<DataFlowEdge>& edges) {
  const Region& region = op.module().region(op.regions()[0]);
  for (size_t i = 0; i < region.arguments.size(); ++i) {
    // Shardy's edges: a sharding flows from an operand to its argument, and from a returned value to its result.
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
    // An argument is inside the region, a result outside: only one side of the edge sees the manual axes.
    edge.target_inside = !op.module().value(edge.owner).op;
    edge.outside = op.module().value(edge.owner).sharding;
    if (!edge.outside) continue;
    const Mesh& mesh = *op.module().context().sharding(edge.outside).mesh;
    for (const RawAxisRef& name : names) {
      // A sharding on another mesh does not have the axis.
      if (const std::optional<int> axis = mesh.find_axis(name.name)) edge.manual_axes.push_back(full_axis(mesh, *axis));
    }
  }
}

bool is_manual(const AxisRef& ref, const AxisList& manual_axes) {
  return std::ranges::any_of(manual_axes, [&](const AxisRef& axis) { return axis.axis == ref.axis; });
}

constexpr OpDef kManualComputationOps[] = {
    region_op("sdy.manual_computation", infer_manual, Regions::kManual, flow_manual, verify_manual_computation,
              "custom<manual_computation>($manual_axes)",
              "A region that sees local shapes along its manual axes (Shardy manual_computation)."),
    region_op("sdy.named_computation", infer_named, Regions::kInline, flow_region, verify_isolated,
              "custom<named_computation>($name)",
              "A region with a name, such as an inlined function (Shardy named_computation)."),
};
static_assert(all_complete(kManualComputationOps));

}  // namespace

std::span<const OpDef> manual_computation_ops() { return kManualComputationOps; }

TensorSharding seen_from_inside(const TensorSharding& outside, const AxisList& manual_axes) {
  TensorSharding inside = outside;
  // Inside, shapes are local along manual axes, so these axes no longer shard anything.
  const auto drop = [&](AxisList& axes) {
    erase_if(axes, [&](const AxisRef& ref) { return is_manual(ref, manual_axes); });
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
      // [{"x", "y"}] with "x" manual: inside, the dim is on {"y"}. Outside "x" comes first, because it cuts first.
      if (is_manual(ref, manual_axes)) axes.push_back(ref);
    }
    axes.insert(axes.end(), outside.dims[d].axes.begin(), outside.dims[d].axes.end());
    outside.dims[d].axes = std::move(axes);
  }
  for (const AxisRef& ref : declared.replicated) {
    if (is_manual(ref, manual_axes)) outside.replicated.push_back(ref);
  }
  // Lists without an order are kept in mesh order.
  std::sort(outside.replicated.begin(), outside.replicated.end());
  return outside;
}

bool is_named_computation(const Module& module, OpId id) { return module.op(id).def->regions == Regions::kInline; }

OpId create_named_computation(Builder& builder, const std::string& name, std::span<const ValueId> operands,
                              RegionId body) {
  const std::vector<TypeId> types = types_of(builder.module(), builder.module().region(body).results);
  return builder.create_op(kManualComputationOps[1].name, operands, Attrs{{"name", name}}, types, {&body, 1});
}

}  // namespace shardwise
