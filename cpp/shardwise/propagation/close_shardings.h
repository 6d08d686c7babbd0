// SPDX-License-Identifier: Apache-2.0
//
// The last step of propagation: dims without axes become replicated.
//
//   %0: [{"data", ?}p1, {?}], replicated={"model"}   ->   %0: [{"data"}, {}]
//   %1: nothing                                      ->   %1: [{}, {}]
#pragma once

#include <span>

#include "shardwise/ir/module.h"

namespace shardwise {

// Closes every dim, drops priorities and replicated lists, and replicates values without a sharding.
void close_shardings(Module& module);
// The same for these values alone.
void close_shardings(Module& module, std::span<const ValueId> values);

}  // namespace shardwise
