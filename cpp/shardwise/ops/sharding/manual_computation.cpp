// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sharding/manual_computation.h"

#include <algorithm>

#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/ops/sharding/manual_computation_verify.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// The types of arguments are not compared here: they are those of shards, which follow from shardings. Those are
// columns, which a new op does not have yet; verify_manual_computation compares them.
void infer_manual(const InferContext& op, std::vector<TypeId>& results) {
  op.attr<AxesAttr>("manual_axes");
  infer_region(op, results);
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

}  // namespace shardwise
