// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/collective_ledger.h"

#include "shardwise/base/error.h"
#include "shardwise/cost/collective_cost.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/control/counted_loop.h"
#include "shardwise/partition/plan_reshards.h"

namespace shardwise {
namespace {

// "{"x"}" for one list that is not empty, else "dim 0 {"x"}, dim 2 {"y"}".
std::string dim_axes_text(const Mesh& mesh, const std::vector<AxisList>& dims) {
  std::string text;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].empty()) continue;
    text += (text.empty() ? "dim " : ", dim ") + std::to_string(d) + " " + axis_list_text(mesh, dims[d]);
  }
  return text;
}

int64_t product_of(const std::vector<AxisList>& dims) {
  int64_t result = 1;
  for (const AxisList& axes : dims) result *= product(axes);
  return result;
}

void read_axes(const OpView& op, LedgerRow& row) {
  const AxisList axes = collective_axes(op);
  row.axes = axis_list_text(*collective_mesh(op), axes);
  row.group_size = product(axes);
}

void read_moves(const OpView& op, LedgerRow& row) {
  for (const AllToAllMove& move : all_to_all_moves(op)) {
    row.axes += (row.axes.empty() ? "" : ", ") + axis_list_text(*collective_mesh(op), move.axes) + " from dim " +
                std::to_string(move.from_dim) + " to dim " + std::to_string(move.to_dim);
    row.group_size *= product(move.axes);
  }
}

void read_permute(const OpView& op, LedgerRow& row) {
  const Mesh& mesh = *collective_mesh(op);
  const PermuteAttrs permute = permute_attrs(op);
  if (permute.axes.empty()) {
    row.axes = axis_list_text(mesh, permute.from) + " as " + axis_list_text(mesh, permute.to);
    row.group_size = product(permute.from);
  } else {
    row.axes = axis_list_text(mesh, permute.axes) + " by " + std::to_string(permute.shift);
    row.group_size = product(permute.axes);
  }
}

// The group is all devices along the axes of the operands and the result.
void read_exchange(const OpView& op, LedgerRow& row) {
  const ExchangeMap map = exchange_map(op);
  const AxisList used = map.axes();
  const AxisList axes = Coordinates(used).grid();
  AxisList shown;
  for (const AxisRef& axis : axes) {
    if (axis.size > 1) shown.push_back(axis);
  }
  row.axes = axis_list_text(*collective_mesh(op), shown);
  row.group_size = product(shown);
  const ExchangeCost cost = exchange_cost(map);
  row.bytes = cost.elements * static_cast<double>(item_size(row.operand.dtype));
  if (!cost.exact && row.bound.empty()) row.bound = "at most";
}

void read_collective(const OpView& op, LedgerRow& row) {
  const auto bytes = static_cast<double>(row.operand.nbytes());
  switch (row.kind) {
    case CollectiveKind::kAllReduce:
      read_axes(op, row);
      row.bytes = most_all_reduce_bytes(bytes, row.group_size, item_size(row.operand.dtype));
      break;
    case CollectiveKind::kReduceScatter: {
      const AxisList axes = collective_axes(op);
      row.axes = dim_axes_text(*collective_mesh(op), collective_dim_axes(op, "scatter"));
      row.group_size = product(axes);
      row.bytes = reduce_scatter_bytes(bytes, row.group_size);
      break;
    }
    case CollectiveKind::kAllGather: {
      const auto gather = collective_dim_axes(op, "gather");
      row.axes = dim_axes_text(*collective_mesh(op), gather);
      row.group_size = product_of(gather);
      row.bytes = all_gather_bytes(bytes, row.group_size);
      break;
    }
    case CollectiveKind::kAllToAll:
      read_moves(op, row);
      row.bytes = all_to_all_bytes(bytes, row.group_size);
      break;
    case CollectiveKind::kCollectivePermute:
      read_permute(op, row);
      row.bytes = collective_permute_bytes(bytes, row.group_size);
      break;
    case CollectiveKind::kExchange: read_exchange(op, row); break;
    case CollectiveKind::kNone:
    case CollectiveKind::kAllSlice:
    case CollectiveKind::kAxisIndex: break;
  }
}

// The executions of the ops of a region in one run.
struct Executions {
  int64_t count = 1;
  std::string_view bound = {};

  Executions in(const OpView& op) const {
    if (op.def().regions == Regions::kBranches) return {count, bound.empty() ? "at most" : bound};
    if (op.def().regions != Regions::kLoop) return *this;
    const auto loop = counted_loop(op);
    int64_t product = 0;
    if (!loop || __builtin_mul_overflow(count, loop->trips, &product)) return {count, "per trip"};
    return {product, bound};
  }
};

void add_rows(const Module& local, RegionId region, const Executions& executions, std::vector<LedgerRow>& rows) {
  for (const OpId id : local.region(region).ops) {
    const OpView op(local, id);
    for (const RegionId nested : op.regions()) add_rows(local, nested, executions.in(op), rows);
    const CollectiveKind kind = op.def().traits.collective;
    if (kind == CollectiveKind::kNone || kind == CollectiveKind::kAllSlice || kind == CollectiveKind::kAxisIndex)
      continue;
    LedgerRow row{.kind = kind,
                  .name = std::string(op.name().substr(op.name().find('.') + 1)),
                  .axes = {},
                  .operand = op.operand_type(0),
                  .result = op.result_type(),
                  .count = executions.count,
                  .bound = executions.bound,
                  .loc = op.loc(),
                  .cause = {},
                  .op = id};
    if (const std::string* cause = op.attrs().find<std::string>(kCauseAttr)) row.cause = *cause;
    read_collective(op, row);
    rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<LedgerRow> collective_ledger(const Module& local) {
  std::vector<LedgerRow> rows;
  add_rows(local, local.main().body, {}, rows);
  return rows;
}

}  // namespace shardwise
