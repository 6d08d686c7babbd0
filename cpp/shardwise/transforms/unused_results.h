// SPDX-License-Identifier: Apache-2.0
//
// Removes the results of private functions that no call of them uses, with the ops that compute them:
//
//   %0:2 = call @f(%x)                                  %0 = call @f(%x)
//   return %0#0                                 ->      return %0
//   func.func private @f … { … return %1, %2 }          func.func private @f … { … return %1 }
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

// Returns the number of results that went. The main function and public functions keep theirs.
int64_t drop_unused_results(Module& module);

}  // namespace shardwise
