// SPDX-License-Identifier: Apache-2.0
//
// Collectives of the local program. Groups are given by axes and sub-axes of the mesh, never by lists of devices.
// Shardy's collectives on global values are in global_collectives.h.
//
//   %1 = "shardwise.all_gather"(%0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh}>
//          : (tensor<2x4xf32>) -> tensor<4x4xf32>
//
//   axis_index          row-major position of this device along `axes`: tensor<i32>
//   all_reduce          reduction over all devices that differ along `axes` only
//   all_gather          dim d grows by the product of gather[d]; shards are concatenated in row-major order of these
//                       axes
//   reduce_scatter      all_reduce over `axes`; each device keeps its part of dim d along scatter[d] (a sublist of
//                       `axes`)
//   all_to_all          each move {axes, from_dim, to_dim} splits to_dim over `axes` and gathers from_dim
//   collective_permute  {from, to}: the device at position i along `to` receives from the one at position i along
//                       `from`, row-major; or {axes, shift, wrap}: device i receives from i - shift; devices without
//                       a source receive zeros
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> collective_ops();

// Fields that all collectives share.
inline constexpr std::string_view kAfterGradients = "created by passes that run after differentiation";
void batch_collective(BatchContext& context);
OpCost collective_cost(const OpView& op);

// These read the attributes of a local collective.
struct AllToAllMove {
  AxisList axes;
  int64_t from_dim = 0;
  int64_t to_dim = 0;
};
struct PermuteAttrs {
  AxisList from, to;  // digit permutation, or empty
  AxisList axes;      // shift, or empty
  int64_t shift = 0;
  bool wrap = false;
};
MeshPtr collective_mesh(const OpView& op);
AxisList collective_axes(const OpView& op);                                          // `axes`
std::vector<AxisList> collective_dim_axes(const OpView& op, std::string_view name);  // `gather` or `scatter`
std::vector<AllToAllMove> all_to_all_moves(const OpView& op);
PermuteAttrs permute_attrs(const OpView& op);
Reducer collective_reducer(const OpView& op);

// These create local collectives.
ValueId create_axis_index(Builder& builder, const Mesh& mesh, AxisSpan axes);
ValueId create_all_reduce(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, Reducer reducer);
ValueId create_all_gather(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AxisList> gather);
ValueId create_reduce_scatter(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes,
                              std::span<const AxisList> scatter, Reducer reducer);
ValueId create_all_to_all(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AllToAllMove> moves);
ValueId create_collective_permute(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan from, AxisSpan to);
ValueId create_shift(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift, bool wrap);

}  // namespace shardwise
