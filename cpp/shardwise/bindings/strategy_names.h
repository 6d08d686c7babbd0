// SPDX-License-Identifier: Apache-2.0
//
// Strategies as Python calls them.
#pragma once

#include <string>

#include "shardwise/ir/compile_options.h"

namespace shardwise {

inline constexpr const char* kDefaultStrategy = "aggressive";
static_assert(CompileOptions().strategy == Strategy::kAggressive);

Strategy strategy_from_name(const std::string& name);  // "basic" or "aggressive"; ShardingError for another

}  // namespace shardwise
