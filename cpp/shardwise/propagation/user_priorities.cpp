// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/user_priorities.h"

#include <algorithm>

namespace shardwise {

namespace {

bool has_priorities(const TensorSharding& sharding) {
  return std::ranges::any_of(sharding.dims, [](const DimSharding& dim) { return dim.priority.has_value(); });
}

}  // namespace

void UserPriorities::hold_back() {
  if (!module_.context().any_sharding(has_priorities)) return;  // there are far fewer shardings than values
  recorder_.begin_priority(0);
  for (uint32_t i = 1; i < module_.value_count(); ++i) hold_back({ValueId{i}, 0, module_.value(ValueId{i}).sharding});
  // A copy, because hold_back writes to the list.
  const std::vector<ShardingId> results = module_.main().result_shardings;
  for (uint32_t i = 0; i < results.size(); ++i) hold_back({{}, i, results[i]});
}

void UserPriorities::hold_back(Held held) {
  if (!held.annotation) return;
  TensorSharding sharding = module_.context().sharding(held.annotation);
  if (!has_priorities(sharding)) return;
  AxisList withheld;
  for (DimSharding& dim : sharding.dims) {
    const int64_t priority = dim.priority.value_or(0);
    dim.priority.reset();
    if (priority == 0) continue;
    // Also for an open dim without axes: it may take none before its turn.
    waiting_.insert(priority);
    withheld.insert(withheld.end(), dim.axes.begin(), dim.axes.end());
    dim = DimSharding{};
  }
  if (!withheld.empty()) {
    sharding.replicated.insert(sharding.replicated.end(), withheld.begin(), withheld.end());
    // Sorted but not merged, as in Shardy: `release` finds the refs of a dim one by one.
    std::sort(sharding.replicated.begin(), sharding.replicated.end());
  }
  held_.push_back(held);
  set(held, sharding);
}

void UserPriorities::hold_back_state() {
  const int64_t last = waiting_.empty() ? 1 : *waiting_.rbegin() + 1;
  const Region& body = module_.region(module_.main().body);
  const std::vector<ValueId> arguments = body.arguments, returned = body.results;
  const std::vector<ShardingId> results = module_.main().result_shardings;
  std::vector<bool> is_taken(returned.size());
  const auto is_of = [&](const Value& argument, size_t i) {
    const ShardingId given = i < results.size() ? results[i] : ShardingId{};
    return !is_taken[i] && module_.value(returned[i]).type == argument.type && (!given || given == argument.sharding);
  };
  for (const ValueId argument : arguments) {
    const Value& value = module_.value(argument);
    if (!value.sharding) continue;
    for (uint32_t i = 0; i < returned.size(); ++i) {
      if (!is_of(value, i)) continue;
      is_taken[i] = true;
      if (i < results.size()) hold_back_all({{}, i, results[i]}, last);
      hold_back_all({argument, 0, value.sharding}, last);
      break;
    }
  }
}

void UserPriorities::hold_back_all(Held held, int64_t priority) {
  if (!held.annotation) return;
  TensorSharding sharding = module_.context().sharding(held.annotation);
  if (has_priorities(sharding)) return;  // it is held back by those
  for (DimSharding& dim : sharding.dims) {
    if (!dim.axes.empty()) dim.priority = priority;
  }
  held.annotation = module_.context().intern(sharding);
  hold_back(held);
}

void UserPriorities::release(int64_t priority) {
  recorder_.begin_priority(priority);
  for (const Held& held : held_) {
    const TensorSharding annotation = module_.context().sharding(held.annotation);
    TensorSharding sharding = module_.context().sharding(sharding_of(held));
    bool any = false;
    for (size_t d = 0; d < annotation.dims.size(); ++d) {
      if (annotation.dims[d].priority != priority) continue;
      any = true;
      // Nothing can have reached the dim, because it was closed.
      sharding.dims[d] = annotation.dims[d];
      sharding.dims[d].priority.reset();
      erase_if(sharding.replicated, [&](const AxisRef& ref) {
        return std::ranges::find(annotation.dims[d].axes, ref) != annotation.dims[d].axes.end();
      });
    }
    if (any) set(held, sharding);
  }
}

ShardingId& UserPriorities::sharding_of(const Held& held) {
  return held.value ? module_.value(held.value).sharding : module_.main().result_shardings[held.result];
}

void UserPriorities::set(const Held& held, const TensorSharding& sharding) {
  const ShardingId id = sharding_of(held) = module_.context().intern(sharding);
  recorder_.record_by_priority(held.value, held.value ? 0 : held.result, id);
}

}  // namespace shardwise
