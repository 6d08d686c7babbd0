// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/collective_ledger.h"

#include <unordered_set>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/executions.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/control/call_graph.h"
#include "shardwise/ops/control/control.h"

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

std::string moves_text(const LocalCollective& collective) {
  return join(collective.moves, ", ", [&](const AllToAllMove& move) {
    return str(axis_list_text(*collective.mesh, move.axes), " from dim ", move.from_dim, " to dim ", move.to_dim);
  });
}

std::string permute_text(const LocalCollective& collective) {
  const Mesh& mesh = *collective.mesh;
  const PermuteAttrs& permute = collective.permute;
  if (!permute.axes.empty()) return str(axis_list_text(mesh, permute.axes), " by ", permute.shift);
  return str(axis_list_text(mesh, permute.from), " as ", axis_list_text(mesh, permute.to));
}

std::string axes_text(const LocalCollective& collective) {
  switch (collective.kind) {
    case CollectiveKind::kAllGather:
    case CollectiveKind::kReduceScatter: return dim_axes_text(*collective.mesh, collective.dims);
    case CollectiveKind::kAllToAll: return moves_text(collective);
    case CollectiveKind::kCollectivePermute: return permute_text(collective);
    default: break;
  }
  const std::string axes = axis_list_text(*collective.mesh, collective.axes);
  if (collective.from_mesh == nullptr) return axes;
  return str(collective.from_mesh->reference(), " ", axis_list_text(*collective.from_mesh, collective.from_axes),
             " as ", collective.mesh->reference(), " ", axes);
}

std::string_view bound_of(CountKind kind) {
  switch (kind) {
    case CountKind::kExact: break;
    case CountKind::kBranch: return kAtMost;
    case CountKind::kAssumed: return kPerTrip;
  }
  return {};
}

LedgerRow row_of(const OpView& op, const Executions& executions) {
  const LocalCollective collective = read_collective(op);
  LedgerRow row{.kind = collective.kind,
                .name = std::string(op.name().substr(op.name().find('.') + 1)),
                .axes = axes_text(collective),
                .bytes = collective.bytes,
                .group_size = collective.group_size,
                .is_chain = collective.is_chain,
                .operand = op.operand_type(0),
                .result = op.result_type(),
                .count = executions.count,
                .bound = bound_of(executions.kind),
                .loc = op.loc(),
                .cause = {},
                .op = op.id()};
  if (const std::string* cause = op.attrs().find<std::string>(kCauseAttr)) row.cause = *cause;
  // A loop or a branch around it may have given the row a bound that is as weak already.
  if (!collective.is_exact && row.bound.empty()) row.bound = kAtMost;
  return row;
}

// Rows in the order of the program; those of a function stand where it is called first.
class LedgerMaker {
 public:
  explicit LedgerMaker(const Module& local) : local_(local), calls_(local), executions_(local) {}

  std::vector<LedgerRow> run() {
    add_rows(local_.main().body);
    return std::move(rows_);
  }

 private:
  void add_rows(RegionId region) {
    for (const OpId id : local_.region(region).ops) {
      const OpView op(local_, id);
      for (const RegionId nested : op.regions()) add_rows(nested);
      // The count of a function's rows has all of its calls already, so its rows are added once.
      if (is_call(local_, id) && shown_.insert(calls_.callee(id)).second) {
        add_rows(called_function(local_, id).body);
      }
      if (moves_data(op.def().traits.collective)) rows_.push_back(row_of(op, executions_.of(id)));
    }
  }

  const Module& local_;
  const CallGraph calls_;
  const ModuleExecutions executions_;
  std::unordered_set<size_t> shown_;  // functions
  std::vector<LedgerRow> rows_;
};

}  // namespace

std::vector<LedgerRow> collective_ledger(const Module& local) { return LedgerMaker(local).run(); }

}  // namespace shardwise
