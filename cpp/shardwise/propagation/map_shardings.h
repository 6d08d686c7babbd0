// SPDX-License-Identifier: Apache-2.0
//
// Replaces every sharding of a module by a function of it: those of values, of results of functions, and in attributes.
// Calls the function once for each distinct sharding, in the order of the text: a function's arguments, results, ops.
//
//   map_shardings(module, [](const TensorSharding& sharding) { return sharding.closed(); });
#pragma once

#include <functional>

#include "shardwise/ir/module.h"

namespace shardwise {

using ShardingMap = std::function<TensorSharding(const TensorSharding&)>;
void map_shardings(Module& module, const ShardingMap& map);

}  // namespace shardwise
