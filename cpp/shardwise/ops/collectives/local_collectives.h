// SPDX-License-Identifier: Apache-2.0
//
// Collectives of the local program. Groups are given by axes and sub-axes of the mesh, never by lists of devices.
// The collectives of the sdy dialect, on global values, are in shardy_collectives.cpp.
//
//   %1 = "shardwise.all_gather"(%0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh}>
//          : (tensor<2x4xf32>) -> tensor<4x4xf32>
//
// all_reduce, all_gather and reduce_scatter take several operands of one dtype, each with a result of its own, and move them
// together; `cause` is then a list of one text for each:
//
//   %2:2 = "shardwise.all_reduce"(%0, %1) <{axes = …{"x"}, mesh = @mesh, reducer = "sum", cause = ["…", "…"]}>
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
//                       a source receive zeros. With a `reducer` it is a chain: device i receives what the operands of
//                       all devices before it combine to, from its neighbor; the shift is 1, or -1 for those after it
//   exchange            each device receives a part of a value that is sharded otherwise, or read at another place
//                       (exchange.h)
#pragma once

#include <optional>
#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> local_collective_ops();

// Fields that all collectives share.
void batch_collective(BatchContext& context);
OpCost collective_cost(const OpView& op, const LocalTypes& types);
constexpr OpDef collective_op(std::string_view name, CollectiveKind kind, std::string_view doc) {
  return OpDef{.name = name,
               .cost = collective_cost,
               .vjp = not_differentiable,
               .batch = batch_collective,
               .no_vjp_reason = kAfterGradients,
               .doc = doc,
               .traits = {.collective = kind}};
}

// Reading the attributes of a local collective.
struct PermuteAttrs {
  AxisList from, to;  // digit permutation, or empty
  AxisList axes;      // shift, or empty
  int64_t shift = 0;
  bool wrap = false;
  Reducer reducer = Reducer::kNone;  // of a chain
};
// Adds to `from` and `to` the axes that only the other one has. These trade places, so that the map is a permutation of
// devices: {x} to {y} becomes {x, y} to {y, x}.
PermuteAttrs completed(PermuteAttrs permute);
// The position along `axes` of the sender to the device at `position`; none if the device receives zeros instead.
std::optional<int64_t> sender_of(const PermuteAttrs& permute, int64_t position);
// `by` places after `position` in a row of `count`, or in a ring (`wrap`); none past the ends of a row.
std::optional<int64_t> shifted(int64_t position, int64_t by, int64_t count, bool wrap);
// Whether collectives of this kind take several operands.
bool may_combine(CollectiveKind kind);
std::string_view collective_cause(const OpView& op, size_t operand = 0);  // "" if it has none
MeshPtr collective_mesh(const OpView& op);
AxisList collective_axes(const OpView& op);                                          // `axes`
std::vector<AxisList> collective_dim_axes(const OpView& op, std::string_view name);  // `gather` or `scatter`
std::vector<AllToAllMove> all_to_all_moves(const OpView& op);
PermuteAttrs permute_attrs(const OpView& op);
Reducer collective_reducer(const OpView& op);

}  // namespace shardwise
