// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/broadcast_states.h"

#include <algorithm>
#include <unordered_set>

namespace shardwise {
namespace {

struct TracedDims {
  ValueId value;
  std::vector<int> dims;
};

// The dims of an operand among those of the op's result, by the factors of its rule.
std::vector<int> dims_of_operand(const OpView& op, size_t operand, const std::vector<int>& dims) {
  const ShardingRule& rule = sharding_rule(op);
  std::vector<int> found(static_cast<size_t>(op.operand_type(operand).ndim()), -1);
  if (rule.empty()) return found;
  const size_t result = rule.result_tensor(0);
  for (size_t d = 0; d < found.size(); ++d) {
    const auto factors = rule.dim(operand, d);
    for (size_t r = 0; r < dims.size() && factors.size() == 1; ++r) {
      if (op.operand_type(operand).shape[d] == 1) break;  // it is repeated, or of one element
      if (std::ranges::equal(rule.dim(result, r), factors)) found[d] = dims[r];
    }
  }
  return found;
}

}  // namespace

void append_broadcast_states(const Module& module, ValueId value, std::span<const ValueId> arguments,
                             std::vector<BroadcastState>& found) {
  std::vector<int> all(static_cast<size_t>(module.type(value).ndim()));
  for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int>(d);
  std::vector<TracedDims> open{{value, all}};
  std::unordered_set<ValueId> seen;
  while (!open.empty()) {
    const TracedDims at = std::move(open.back());
    open.pop_back();
    if (module.type(at.value).ndim() == 0 || !seen.insert(at.value).second) continue;
    const OpId id = module.value(at.value).op;
    if (!id) {
      const bool is_known = std::ranges::any_of(found, [&](const auto& one) { return one.state == at.value; });
      if (!is_known && std::ranges::find(arguments, at.value) != arguments.end()) found.push_back({at.value, at.dims});
      continue;
    }
    const OpView op(module, id);
    const Traits& traits = op.def().traits;
    if (op.result_count() != 1 || !(traits.elementwise || traits.movement || traits.constraint)) continue;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      open.push_back({op.operand(i), dims_of_operand(op, i, at.dims)});
    }
  }
}

}  // namespace shardwise
