// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_price.h"

#include "shardwise/cost/collective_time.h"
#include "shardwise/mesh/exchange.h"
#include "shardwise/reshard/movement.h"

namespace shardwise {
namespace {

TransferKind transfer_of(ReshardMove move) {
  switch (move) {
    case ReshardMove::kAllGather: return TransferKind::kAllGather;
    case ReshardMove::kAllToAll: return TransferKind::kAllToAll;
    case ReshardMove::kReduceScatter: return TransferKind::kReduceScatter;
    case ReshardMove::kAllReduce: return TransferKind::kAllReduce;
    case ReshardMove::kPermute: return TransferKind::kPermute;
    case ReshardMove::kExchange:
    case ReshardMove::kSlice: break;
  }
  return TransferKind::kExchange;
}

// The devices that take part differ along these axes. An exchange across meshes is among all of them.
AxisList group_of(const ReshardStep& step, const Placement& before, DimSpan shape) {
  switch (step.move) {
    case ReshardMove::kAllGather:
    case ReshardMove::kReduceScatter: return joined(step.dim_axes);
    case ReshardMove::kAllReduce: return step.reduced;
    case ReshardMove::kAllToAll: {
      AxisList axes;
      for (const AllToAllMove& move : step.dim_moves) append(axes, move.axes);
      return axes;
    }
    case ReshardMove::kSlice: return {};
    case ReshardMove::kPermute:
    case ReshardMove::kExchange: break;
  }
  const ExchangeMap map = exchange_between(before, step.after, shape);
  if (map.is_across_meshes()) return all_axes(*step.after.mesh);
  AxisList axes;
  for (const AxisRef& axis : Coordinates(map.axes()).grid()) {
    if (axis.size > 1) axes.push_back(axis);
  }
  return axes;
}

}  // namespace

Price price_of(const ReshardPlan& plan, const ReshardProblem& problem, const Hardware& hardware) {
  Price total;
  const Placement* before = &problem.from;
  for (const ReshardStep& step : plan.steps) {
    if (step.move != ReshardMove::kSlice) {
      const TransferKind kind = transfer_of(step.move);
      const double operand = kind == TransferKind::kExchange ? step.bytes : problem.tile_bytes(*before);
      Price price = collective_price(kind, *step.after.mesh, group_of(step, *before, problem.shape),
                                     whole_quantity(operand), hardware);
      price.bytes = whole_quantity(step.bytes);
      total += price;
    }
    before = &step.after;
  }
  return total;
}

}  // namespace shardwise
