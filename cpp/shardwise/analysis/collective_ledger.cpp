// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/collective_ledger.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/executions.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/ops/collectives/exchange.h"
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

// The tiles of the result that come from an operand, as positions of their senders; none if a tile is no whole tile.
std::optional<std::pair<int64_t, int64_t>> senders_of_tiles(const ExchangeTarget& to, const ExchangeSource& from) {
  const int64_t end = std::min(from.end, to.size);
  const bool is_whole = to.rows > 0 && to.step == to.rows && from.scale == 1 && from.holes == 1 &&
                        from.axes == to.axes && (to.axes.empty() || from.block == to.rows) &&
                        from.offset % to.rows == 0 && from.begin % to.rows == 0 &&
                        (end % to.rows == 0 || end == to.size);
  if (!is_whole) return std::nullopt;
  return std::pair((from.begin + from.offset) / to.rows, (end + from.offset + to.rows - 1) / to.rows);
}

// Whether an exchange is a permutation of whole tiles, such as a ring: each device receives the tile of one other, and
// sends its own to one.
bool is_permutation(const ExchangeMap& map) {
  if (map.is_across_meshes()) return false;
  std::vector<std::vector<std::pair<int64_t, int64_t>>> senders;  // by operand and dim
  for (const std::vector<ExchangeSource>& from : map.from) {
    std::vector<std::pair<int64_t, int64_t>>& own = senders.emplace_back();
    for (size_t d = 0; d < map.to.size(); ++d) {
      const auto found = senders_of_tiles(map.to[d], from[d]);
      if (!found) return false;
      own.push_back(*found);
    }
  }
  // No tile of two operands: their boxes are apart along a dim.
  for (size_t a = 0; a < senders.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      bool are_apart = false;
      for (size_t d = 0; d < map.to.size(); ++d) {
        are_apart |= !map.to[d].axes.empty() &&
                     (senders[a][d].second <= senders[b][d].first || senders[b][d].second <= senders[a][d].first);
      }
      if (!are_apart) return false;
    }
  }
  return true;
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
                .loc = loc_of(op.module(), op.result()),
                .cause = std::string(collective_cause(op)),
                .op = op.id()};
  for (size_t i = 0; may_combine(row.kind) && op.operand_count() > 1 && i < op.operand_count(); ++i) {
    row.combined.push_back({.bytes = received_for(op, i, collective),
                            .operand = op.operand_type(i),
                            .result = op.result_type(i),
                            .loc = loc_of(op.module(), op.result(i)),
                            .cause = std::string(collective_cause(op, i))});
  }
  // JAX's word for it, whatever op the user wrote.
  const bool sends = collective.kind == CollectiveKind::kExchange && collective.bytes > 0;
  if (sends && is_permutation(exchange_map(op))) row.name = "collective_permute";
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
