// SPDX-License-Identifier: Apache-2.0
//
// The last step of propagation: what no axis has joined stays whole.
//
//   %0: [{"data", ?}p1, {?}], replicated={"model"}   ->   %0: [{"data"}, {}]
//   %1: nothing                                      ->   %1: [{}, {}]
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// Closes every dim, drops priorities and replicated lists, and makes values without sharding whole on every device.
void close_shardings(Module& module);

}  // namespace shardwise
