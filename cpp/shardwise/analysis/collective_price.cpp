// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/collective_price.h"

#include "shardwise/base/quantity.h"
#include "shardwise/cost/collective_time.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/cost/exchange_transfer.h"
#include "shardwise/ops/collectives/exchange.h"

namespace shardwise {
namespace {

void read_axes(const OpView& op, LocalCollective& found) {
  found.axes = collective_axes(op);
  found.group_size = product(found.axes);
}

void read_moves(const OpView& op, LocalCollective& found) {
  found.moves = all_to_all_moves(op);
  for (const AllToAllMove& move : found.moves) append(found.axes, move.axes);
  found.group_size = product(found.axes);
}

TransferKind transfer_of_permute(const PermuteAttrs& permute, int64_t group_size) {
  if (permute.axes.empty()) return TransferKind::kPermute;
  if (permute.reducer != Reducer::kNone) return TransferKind::kChain;
  const int64_t shift = permute.shift < 0 ? -permute.shift : permute.shift;
  const bool is_next = shift == 1 || (permute.wrap && shift == group_size - 1);
  return is_next ? TransferKind::kShift : TransferKind::kPermute;
}

void read_permute(const OpView& op, LocalCollective& found) {
  found.permute = permute_attrs(op);
  const bool is_shift = !found.permute.axes.empty();
  found.axes = is_shift ? found.permute.axes : found.permute.from;
  found.group_size = product(found.axes);
  found.transfer = transfer_of_permute(found.permute, found.group_size);
  // A permute with a reducer passes a running total on, from neighbor to neighbor.
  found.is_chain = found.transfer == TransferKind::kChain;
}

void read_exchange(const OpView& op, LocalCollective& found) {
  const ExchangeMap map = exchange_map(op);
  found.transfer = transfer_of(map);
  found.moving_axes = moving_axes(map);
  if (map.is_across_meshes()) {
    found.mesh = map.to_mesh;
    found.from_mesh = map.from_mesh;
    for (const ExchangeTarget& dim : map.to) append_merged(found.axes, dim.axes);
    for (const ExchangeSource& dim : map.from[0]) append_merged(found.from_axes, dim.axes);
    found.group_size = map.to_mesh->device_count();
  } else {
    // The ledger's group: all devices along the axes of the operands and the result.
    for (const AxisRef& axis : Coordinates(map.axes()).grid()) {
      if (axis.size > 1) found.axes.push_back(axis);
    }
    found.group_size = product(found.axes);
  }
  const ExchangeCost cost = exchange_cost(map);
  found.bytes = cost.elements * static_cast<double>(found.item_size);
  found.is_exact = cost.exact;
}

}  // namespace

// The parts of a reduction are of whole elements, so that the bytes of several operands are no function of their sum.
double received_for(const OpView& op, size_t operand, const LocalCollective& collective) {
  const auto bytes = static_cast<double>(op.operand_type(operand).byte_quantity());
  switch (collective.kind) {
    case CollectiveKind::kAllReduce: return all_reduce_bytes(bytes, collective.group_size, collective.item_size);
    case CollectiveKind::kReduceScatter: return reduce_scatter_bytes(bytes, collective.group_size);
    case CollectiveKind::kAllGather: return all_gather_bytes(bytes, collective.group_size);
    default: return collective.bytes;
  }
}

bool moves_data(CollectiveKind kind) {
  return kind != CollectiveKind::kNone && kind != CollectiveKind::kAllSlice && kind != CollectiveKind::kAxisIndex &&
         kind != CollectiveKind::kToUnreduced;
}

LocalCollective read_collective(const OpView& op) {
  LocalCollective found{.kind = op.def().traits.collective, .mesh = nullptr, .axes = {}};
  if (!moves_data(found.kind)) return found;
  found.mesh = collective_mesh(op);
  found.item_size = item_size(op.operand_type(0).dtype);
  // Exchanges and moves between dims have other sizes than the sum, or one operand.
  const size_t count = may_combine(found.kind) ? op.operand_count() : 1;
  for (size_t i = 0; i < count; ++i) {
    found.operand_bytes = saturated_sum(found.operand_bytes, op.operand_type(i).byte_quantity());
  }
  const auto bytes = static_cast<double>(found.operand_bytes);
  switch (found.kind) {
    case CollectiveKind::kAllReduce:
      found.transfer = TransferKind::kAllReduce;
      read_axes(op, found);
      for (size_t i = 0; i < count; ++i) found.bytes += received_for(op, i, found);
      break;
    case CollectiveKind::kReduceScatter:
      found.transfer = TransferKind::kReduceScatter;
      read_axes(op, found);
      found.dims = collective_dim_axes(op, "scatter");
      found.bytes = reduce_scatter_bytes(bytes, found.group_size);
      break;
    case CollectiveKind::kAllGather:
      found.transfer = TransferKind::kAllGather;
      found.dims = collective_dim_axes(op, "gather");
      found.axes = joined(found.dims);
      found.group_size = product(found.axes);
      found.bytes = all_gather_bytes(bytes, found.group_size);
      break;
    case CollectiveKind::kAllToAll:
      found.transfer = TransferKind::kAllToAll;
      read_moves(op, found);
      found.bytes = all_to_all_bytes(bytes, found.group_size);
      break;
    case CollectiveKind::kCollectivePermute:
      read_permute(op, found);
      found.bytes = collective_permute_bytes(bytes, found.group_size);
      break;
    case CollectiveKind::kExchange: read_exchange(op, found); break;
    default: break;
  }
  return found;
}

namespace {

// Elements of an exchange may move along some of its axes only: these decide the time.
const AxisList& priced_axes(const LocalCollective& collective) {
  return collective.kind == CollectiveKind::kExchange ? collective.moving_axes : collective.axes;
}

// An exchange has no other size than what it receives.
int64_t priced_bytes(const LocalCollective& collective) {
  return collective.kind == CollectiveKind::kExchange ? whole_quantity(collective.bytes) : collective.operand_bytes;
}

}  // namespace

CollectiveTime collective_time(const LocalCollective& collective, const Hardware& hardware) {
  const AxisList& axes = priced_axes(collective);
  if (product(axes) <= 1) return {};
  const TierCut cut = device_tiers(*collective.mesh, hardware)->cut(axes);
  return collective_time(collective.transfer, priced_bytes(collective), cut, hardware);
}

Price collective_price(const LocalCollective& collective, const Hardware& hardware) {
  const int64_t size = product(priced_axes(collective));
  if (size <= 1) return {};
  return {.ps = collective_time(collective, hardware).total(),
          .bytes = whole_quantity(collective.bytes),
          .rounds = transfer_rounds(collective.transfer, size)};
}

}  // namespace shardwise
