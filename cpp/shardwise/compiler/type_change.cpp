// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/type_change.h"

#include <ranges>
#include <unordered_set>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {

ValueId first_change_of_type(const Module& module, RegionId region, ValueId carry, ValueId result) {
  const TensorType& type = module.type(carry);
  const bool keeps_dtype = module.type(result).dtype == type.dtype;
  const auto is_changed = [&](ValueId value) {
    const TensorType& own = module.type(value);
    return keeps_dtype ? own.shape != type.shape : own.dtype != type.dtype;
  };
  const std::vector<OpId>& ops = module.region(region).ops;
  // What the result comes from through changed values alone: a value that is changed back in between is no cause.
  std::unordered_set<ValueId> causes{result};
  const auto is_cause = [&](ValueId value) { return causes.contains(value); };
  for (const OpId op : ops | std::views::reverse) {
    if (!any_result(module, op, is_cause)) continue;
    visit_reads(module, op, [&](ValueId value) {
      if (is_changed(value)) causes.insert(value);
    });
  }
  std::unordered_set<ValueId> reached{carry};
  for (const OpId op : ops) {
    if (!reads_any(module, op, [&](ValueId value) { return reached.contains(value); })) continue;
    const bool reads_unchanged =
        reads_any(module, op, [&](ValueId value) { return reached.contains(value) && !is_changed(value); });
    for (const ValueId made : results_of(module, op)) {
      if (reads_unchanged && is_cause(made)) return made;
      reached.insert(made);
    }
  }
  return result;
}

}  // namespace shardwise
