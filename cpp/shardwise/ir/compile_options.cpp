// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/compile_options.h"

#include <algorithm>
#include <span>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// In the order of Strategy and of Objective.
constexpr std::string_view kStrategies[] = {"basic", "aggressive"}, kObjectives[] = {"time", "bytes"};

template <class Value>
Value value_called(std::string_view name, std::string_view subject, std::string_view rule,
                   std::span<const std::string_view> names) {
  const auto known = std::ranges::find(names, name);
  if (known == names.end()) fail<ShardingError>(subject, rule, name);
  return static_cast<Value>(known - names.begin());
}

}  // namespace

std::string_view name(Strategy strategy) { return kStrategies[static_cast<size_t>(strategy)]; }

void set_strategy(CompileOptions& options, std::string_view name) {
  options.strategy = value_called<Strategy>(name, "propagate", "strategy must be 'basic' or 'aggressive'", kStrategies);
}

void set_objective(CompileOptions& options, std::string_view name) {
  options.objective = value_called<Objective>(name, "compile", "objective must be 'time' or 'bytes'", kObjectives);
}

}  // namespace shardwise
