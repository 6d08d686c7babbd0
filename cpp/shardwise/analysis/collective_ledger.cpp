// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/collective_ledger.h"

#include <limits>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/cost/collective_cost.h"
#include "shardwise/cost/exchange_cost.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/counted_loop.h"

namespace shardwise {
namespace {

constexpr std::string_view kAtMost = "at most", kPerTrip = "per trip";

// "{"x"}" for one list that is not empty, else "dim 0 {"x"}, dim 2 {"y"}".
std::string dim_axes_text(const Mesh& mesh, const std::vector<AxisList>& dims) {
  std::string text;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d].empty()) continue;
    text += (text.empty() ? "dim " : ", dim ") + std::to_string(d) + " " + axis_list_text(mesh, dims[d]);
  }
  return text;
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
    // A permute with a reducer passes a running total on, from neighbor to neighbor.
    row.is_chain = permute.reducer != Reducer::kNone;
  }
}

// The group is all devices along the axes of the operands and the result.
void read_exchange(const OpView& op, LedgerRow& row) {
  const ExchangeMap map = exchange_map(op);
  if (map.is_across_meshes()) {
    AxisList from, to;
    for (const ExchangeTarget& dim : map.to) append_merged(to, dim.axes);
    for (const ExchangeSource& dim : map.from[0]) append_merged(from, dim.axes);
    row.axes = str(map.from_mesh->reference(), " ", axis_list_text(*map.from_mesh, from), " as ",
                   map.to_mesh->reference(), " ", axis_list_text(*map.to_mesh, to));
    row.group_size = map.to_mesh->device_count();
  } else {
    const AxisList used = map.axes();
    AxisList shown;
    for (const AxisRef& axis : Coordinates(used).grid()) {
      if (axis.size > 1) shown.push_back(axis);
    }
    row.axes = axis_list_text(*collective_mesh(op), shown);
    row.group_size = product(shown);
  }
  const ExchangeCost cost = exchange_cost(map);
  row.bytes = cost.elements * static_cast<double>(item_size(row.operand.dtype));
  // A loop or a branch around it may have given the row a bound that is as weak already.
  if (!cost.exact && row.bound.empty()) row.bound = kAtMost;
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
      row.group_size = product(joined(gather));
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
    case CollectiveKind::kToUnreduced:
    case CollectiveKind::kAxisIndex: break;
  }
}

// The executions of the ops of a region in one run.
struct Executions {
  int64_t count = 1;
  std::string_view bound = {};

  Executions in(const OpView& op) const {
    // Any of the branches may run, so each is counted as if it ran every time.
    if (op.def().regions == Regions::kBranches) return {count, bound.empty() ? kAtMost : bound};
    if (op.def().regions != Regions::kLoop) return *this;
    const auto trips = trip_count(op);
    int64_t product = 0;
    // The count stays that of one trip, as the bound states.
    if (!trips || __builtin_mul_overflow(count, *trips, &product)) return {count, kPerTrip};
    return {product, bound};
  }

  void add(const Executions& more) {
    if (__builtin_add_overflow(count, more.count, &count)) count = std::numeric_limits<int64_t>::max();
    // A sum of calls is as weak as its weakest part: per trip is weaker than at most.
    for (const std::string_view weaker : {kAtMost, kPerTrip}) {
      if (more.bound == weaker && bound != kPerTrip) bound = weaker;
    }
  }
};

// Rows in the order of the program; those of a function stand where it is called first.
class LedgerMaker {
 public:
  explicit LedgerMaker(const Module& local)
      : local_(local), calls_(local), executions_(local.functions.size(), {.count = 0}) {}

  std::vector<LedgerRow> run() {
    for (const size_t f : calls_.reached()) {  // callers first
      if (f == calls_.reached().front()) executions_[f].count = 1;
      if (!calls_.calls(f).empty()) count_calls(local_.functions[f].body, executions_[f]);
    }
    add_rows(local_.main().body, {});
    return std::move(rows_);
  }

 private:
  void count_calls(RegionId region, const Executions& executions) {
    for (const OpId id : local_.region(region).ops) {
      if (is_call(local_, id)) executions_[calls_.callee(id)].add(executions);
      const OpView op(local_, id);
      for (const RegionId nested : op.regions()) count_calls(nested, executions.in(op));
    }
  }

  void add_rows(RegionId region, const Executions& executions) {
    for (const OpId id : local_.region(region).ops) {
      const OpView op(local_, id);
      for (const RegionId nested : op.regions()) add_rows(nested, executions.in(op));
      // The count of a function's rows has all of its calls already, so its rows are added once.
      if (is_call(local_, id) && shown_.insert(calls_.callee(id)).second) {
        add_rows(called_function(local_, id).body, executions_[calls_.callee(id)]);
      }
      const CollectiveKind kind = op.def().traits.collective;
      if (kind == CollectiveKind::kNone || kind == CollectiveKind::kAllSlice || kind == CollectiveKind::kAxisIndex)
        continue;
      rows_.push_back(row_of(op, executions));
    }
  }

  static LedgerRow row_of(const OpView& op, const Executions& executions) {
    LedgerRow row{.kind = op.def().traits.collective,
                  .name = std::string(op.name().substr(op.name().find('.') + 1)),
                  .axes = {},
                  .operand = op.operand_type(0),
                  .result = op.result_type(),
                  .count = executions.count,
                  .bound = executions.bound,
                  .loc = op.loc(),
                  .cause = {},
                  .op = op.id()};
    if (const std::string* cause = op.attrs().find<std::string>(kCauseAttr)) row.cause = *cause;
    read_collective(op, row);
    return row;
  }

  const Module& local_;
  const CallGraph calls_;
  std::vector<Executions> executions_;  // by function, of its body
  std::unordered_set<size_t> shown_;    // functions
  std::vector<LedgerRow> rows_;
};

}  // namespace

std::vector<LedgerRow> collective_ledger(const Module& local) { return LedgerMaker(local).run(); }

}  // namespace shardwise
