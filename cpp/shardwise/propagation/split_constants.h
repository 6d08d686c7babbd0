// SPDX-License-Identifier: Apache-2.0
//
// Gives each use of a constant its own copy, so that two uses do not tie their shardings together:
//
//   %c = constant 0                     %c = constant 0
//   %b = broadcast_in_dim %c     ->     %b = broadcast_in_dim %c;  %b1 = broadcast_in_dim %c
//   %1 = maximum %x, %b                 %1 = maximum %x, %b
//   %2 = maximum %y, %b                 %2 = maximum %y, %b1
//
// A constant is an op marked constant_like, a chain of elementwise ops and ops that keep constants from there on (a
// named computation counts if all its ops do), or any broadcast of a scalar. Scalars stay shared, because they are
// never sharded. The first use keeps the original; copies are placed beside it, in its groups. Unused originals are
// removed.
#pragma once

#include <cstdint>

#include "shardwise/ir/pass.h"

namespace shardwise {

inline constexpr int64_t kMaxCopiedOps = int64_t{1} << 22;

// Throws ShardingError for more copies than this limit, which a short text could exceed by calls.
void split_constants(Module& module, PassContext& context);

}  // namespace shardwise
