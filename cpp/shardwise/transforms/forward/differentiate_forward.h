// SPDX-License-Identifier: Apache-2.0
//
// Forward-mode derivatives: each op is followed by the ops of its tangent.
//
//   %0 = sine %x                                  wrt {%x}, tangents {%t}
//   %1 = multiply %0, %0                          %0 = sine %x;  %2 = cosine %x;  %3 = multiply %t, %2
//                                                 %1 = multiply %0, %0;  %4 = multiply %3, %0;  %5 = multiply %0, %3
//                                                 %6 = add %4, %5                         tangent of %1: %6
//
// An op has no rule of its own for this (push_forward.h). Loops, branches and checkpoints carry tangents beside their
// values, and are replaced by ops that compute both (tangent_walk.h). The result is an ordinary graph, so it can be
// differentiated again, in either direction.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {

struct Tangents {
  std::vector<ValueId> values;  // one per output; none: zeros
  // Results of ops of the region that were replaced by others. The ops of the region read the new ones already.
  Redirection replaced;
};

// Adds tangents to the region of `builder`, which contains the outputs. The wrt values may come from around it; each
// has the type of its tangent, and a tangent may be none: zeros.
Tangents append_jvp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> wrt,
                    std::span<const ValueId> tangents);

}  // namespace shardwise
