// SPDX-License-Identifier: Apache-2.0
//
// A collective of the local program with its attributes parsed in advance, so that a run parses nothing:
//
//   "shardwise.all_reduce"(%3) <{axes = …{"x"}, mesh = @mesh, reducer = "sum"}>
//     read_collective(op)       {kind = kAllReduce, axes = {x}, reducer = kSum}
//     varying_after({{x, y}})   {y}: all devices along x now hold the same value
#pragma once

#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/runtime/device_order.h"

namespace shardwise {

struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::kNone;
  AxisList axes = {};                    // axis_index, all_reduce, reduce_scatter, shift
  std::vector<AxisList> dims = {};       // all_gather, reduce_scatter
  std::vector<AllToAllMove> moves = {};  // all_to_all
  PermuteAttrs permute = {};             // collective_permute
  Reducer reducer = Reducer::kNone;
  ExchangeMap exchange = {};  // exchange
  bool has_fill = false;      // … whose last operand is the fill
  size_t together = 1;  // all_reduce: the number of steps from this one on that travel as one (batch_reductions.h)
  std::shared_ptr<const DeviceOrder> order = nullptr;  // of another mesh than that of the run
  std::vector<bool> reduced = {};  // of a reduction: the operands that are the total already (early_reduction.h)

  AxisList axes_of_mesh() const;  // those used, of the mesh of the collective
  // The digits along which the result of these operands varies; of a call that takes several operands, one of them. This may include too many digits only when a sub-axis ends inside a
  // digit.
  DigitSet varying_after(const Digits& digits, std::span<const DigitSet> operands) const;
  bool is_reduced(size_t operand) const { return operand < reduced.size() && reduced[operand]; }
  bool is_across_meshes() const { return order != nullptr && exchange.is_across_meshes(); }
};

// A collective of another mesh than `main` gets its order of devices, which is kept in `orders`.
CollectiveCall read_collective(const OpView& op, const Mesh& main, DeviceOrders& orders);
// The order of another mesh; null if the mesh orders devices like `main`.
std::shared_ptr<const DeviceOrder> order_of(const MeshPtr& mesh, const Mesh& main, DeviceOrders& orders);

}  // namespace shardwise
