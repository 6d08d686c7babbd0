// SPDX-License-Identifier: Apache-2.0
//
// Replaces every sharding of a module by a function of it: those of values, of results of functions, and in attributes.
// Each distinct sharding is asked for once, in the order of the text: a function's arguments, its results, its ops.
//
//   map_shardings(module, [](const TensorSharding& sharding) { return sharding.closed(); });
#pragma once

#include <functional>

#include "shardwise/ir/module.h"

namespace shardwise {

using ShardingMap = std::function<TensorSharding(const TensorSharding&)>;
void map_shardings(Module& module, const ShardingMap& map);

}  // namespace shardwise
