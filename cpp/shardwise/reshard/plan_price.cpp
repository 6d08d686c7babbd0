// SPDX-License-Identifier: Apache-2.0
#include "shardwise/reshard/plan_price.h"

#include <utility>

#include "shardwise/cost/collective_time.h"
#include "shardwise/cost/exchange_transfer.h"
#include "shardwise/mesh/permute_axes.h"
#include "shardwise/reshard/movement.h"

namespace shardwise {
namespace {

// What a step sends: the arguments of its price.
struct Transfer {
  TransferKind kind = TransferKind::kExchange;
  AxisList axes;     // along which the devices of a group differ
  double bytes = 0;  // as collective_time takes them
};

Transfer transfer_of_exchange(const ReshardStep& step, const Placement& before, const ReshardProblem& problem) {
  const ExchangeMap map = exchange_between(before, step.after, problem.shape);
  return {transfer_of(map), moving_axes(map), step.bytes};
}

// Dims that are split are padded to equal parts first: 10 rows in 4 parts are sent as 12.
double bytes_of_equal_parts(const std::vector<AxisList>& split, const Placement& before, const Placement& after,
                            const ReshardProblem& problem) {
  Placement padded = before;
  for (size_t d = 0; d < split.size(); ++d) {
    if (!split[d].empty()) padded.dims[d].block = after.dims[d].block * product(split[d]);
  }
  return problem.tile_bytes(padded);
}

Transfer transfer_of_all_to_all(const ReshardStep& step, const Placement& before, const ReshardProblem& problem) {
  AxisList axes;
  std::vector<AxisList> split(before.dims.size());
  for (const AllToAllMove& move : step.dim_moves) {
    append(axes, move.axes);
    split[static_cast<size_t>(move.to_dim)] = move.axes;
  }
  return {TransferKind::kAllToAll, std::move(axes), bytes_of_equal_parts(split, before, step.after, problem)};
}

Transfer transfer_of_step(const ReshardStep& step, const Placement& before, const ReshardProblem& problem) {
  const double tile = problem.tile_bytes(before);
  switch (step.move) {
    case ReshardMove::kAllGather: return {TransferKind::kAllGather, joined(step.dim_axes), tile};
    case ReshardMove::kAllReduce: return {TransferKind::kAllReduce, step.reduced, tile};
    case ReshardMove::kAllToAll: return transfer_of_all_to_all(step, before, problem);
    case ReshardMove::kReduceScatter:
      return {TransferKind::kReduceScatter, joined(step.dim_axes),
              bytes_of_equal_parts(step.dim_axes, before, step.after, problem)};
    case ReshardMove::kPermute:
      return {TransferKind::kPermute, permute_axes(before.dim_axes(), step.after.dim_axes()).from, tile};
    case ReshardMove::kExchange: return transfer_of_exchange(step, before, problem);
    case ReshardMove::kSlice: break;
  }
  return {};
}

}  // namespace

Price price_of(const ReshardPlan& plan, const ReshardProblem& problem, const Hardware& hardware) {
  Price total;
  const Placement* before = &problem.from;
  for (const ReshardStep& step : plan.steps) {
    const Transfer transfer = transfer_of_step(step, *before, problem);
    if (product(transfer.axes) > 1) {
      Price price = collective_price(transfer.kind, *step.after.mesh, transfer.axes, whole_quantity(transfer.bytes),
                                     problem.item_size, hardware);
      price.bytes = whole_quantity(step.bytes);
      total += price;
    }
    before = &step.after;
  }
  return total;
}

}  // namespace shardwise
