// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/collective_call.h"

#include "shardwise/base/error.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/runtime/exchange_devices.h"

namespace shardwise {
namespace {

DigitSet varying_after_permute(const PermuteAttrs& permute, const Digits& digits, DigitSet operand) {
  const PermuteAttrs swap = completed(permute);
  const AxisList &from = swap.from, &to = swap.to;
  const DigitSet moved = digits.touched(from);
  // All devices along the moved digits hold the same value, so permuting them changes nothing.
  if ((operand & moved) == 0) return operand;
  // Digits of different sizes mix in the permutation, so the result may vary along all of them.
  if (from.size() != to.size()) return operand | moved;
  // Digit by digit: from = {x}, to = {y} takes what varied along x to y.
  DigitSet after = operand & ~digits.covered(from);
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i].size != to[i].size) return operand | moved;
    const AxisSpan source(&from[i], 1);
    const AxisSpan target(&to[i], 1);
    if ((operand & digits.touched(source)) != 0) after |= digits.touched(target);
  }
  return after;
}

}  // namespace

AxisList CollectiveCall::axes_of_mesh() const {
  AxisList used = joined(axes, joined(dims));
  for (const AllToAllMove& move : moves) append(used, move.axes);
  append(used, permute.from);
  append(used, permute.to);
  append(used, permute.axes);
  append(used, exchange.axes());
  return used;
}

DigitSet CollectiveCall::varying_after(const Digits& digits, std::span<const DigitSet> operands) const {
  // Its axes are no digits of this mesh, so that the devices of any of its groups may differ in all of them.
  if (order != nullptr) return digits.all();
  const AxisList used = axes_of_mesh();
  const DigitSet operand = operands.empty() ? 0 : operands[0];
  switch (kind) {
    case CollectiveKind::kAxisIndex: return digits.touched(axes);
    case CollectiveKind::kAllReduce:
    // `covered`: a digit that the axes only touch is still varied along afterwards.
    case CollectiveKind::kAllGather: return operand & ~digits.covered(used);
    case CollectiveKind::kReduceScatter: return (operand & ~digits.covered(axes)) | digits.touched(joined(dims));
    // The split of to_dim gives each device along the axes another part, even if the operand was the same on all.
    case CollectiveKind::kAllToAll: return operand | digits.touched(used);
    case CollectiveKind::kCollectivePermute:
      if (permute.axes.empty()) return varying_after_permute(permute, digits, operand);
      // The ends of a shift or chain receive zeros, so that the result varies even if all devices had the same.
      return operand | digits.touched(permute.axes);
    case CollectiveKind::kExchange: return varying_after_exchange(exchange, digits, operands);
    case CollectiveKind::kAllSlice:
    case CollectiveKind::kToUnreduced:
    case CollectiveKind::kNone: break;
  }
  check_internal(false, "varying_after: a local collective");
  return operand;
}

std::shared_ptr<const DeviceOrder> order_of(const MeshPtr& mesh, const Mesh& main, DeviceOrders& orders) {
  if (mesh == nullptr || mesh.get() == &main || mesh->same_devices(main)) return nullptr;
  std::shared_ptr<const DeviceOrder>& order = orders[mesh.get()];
  // Kept for all collectives of that mesh, because it lists all devices.
  if (order == nullptr) order = std::make_shared<const DeviceOrder>(std::make_shared<const Mesh>(main), mesh);
  return order;
}

CollectiveCall read_collective(const OpView& op, const Mesh& main, DeviceOrders& orders) {
  CollectiveCall call{.kind = op.def().traits.collective};
  call.order = order_of(collective_mesh(op), main, orders);
  switch (call.kind) {
    case CollectiveKind::kAxisIndex: call.axes = collective_axes(op); break;
    case CollectiveKind::kAllReduce:
      call.axes = collective_axes(op);
      call.reducer = collective_reducer(op);
      break;
    case CollectiveKind::kAllGather: call.dims = collective_dim_axes(op, "gather"); break;
    case CollectiveKind::kReduceScatter:
      call.axes = collective_axes(op);
      call.dims = collective_dim_axes(op, "scatter");
      call.reducer = collective_reducer(op);
      break;
    case CollectiveKind::kAllToAll: call.moves = all_to_all_moves(op); break;
    case CollectiveKind::kCollectivePermute: call.permute = permute_attrs(op); break;
    case CollectiveKind::kExchange:
      call.exchange = exchange_map(op);
      call.has_fill = has_fill(op);
      // Across meshes, the mesh of the run may be that of the result; then the operands are on the other one.
      if (call.order == nullptr) call.order = order_of(call.exchange.from_mesh, main, orders);
      break;
    case CollectiveKind::kAllSlice:
    case CollectiveKind::kToUnreduced:
    case CollectiveKind::kNone: check_internal(false, "read_collective: a local collective");
  }
  return call;
}

}  // namespace shardwise
