// SPDX-License-Identifier: Apache-2.0
//
// Makes the carries of a loop those that change and that something reads, loops in loops first:
//
//   %r:4 = while(%i = %0, %x = %a, %w = %b, %t = %c)      %r:2 = while(%i = %0, %x = %a)
//   cond { %i < 10 }                                      cond { %i < 10 }
//   do   { %y = dot %x, %w                            ->  do   { %y = dot %x, %b
//          %u = add %t, %y                                       return %i + 1, %y }
//          return %i + 1, %y, %w, %u }
//   return %r#1                                           return %r#1
//
// A carry that the body returns unchanged (%w) is the value from before the loop. A carry that only feeds itself (%t)
// goes. JAX writes the constants of a loop as such carries. Partitioned as values from around the loop, they are
// resharded once, before it.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module simplify_loops(Module module, PassContext& context);
inline constexpr Pass kSimplifyLoops{.name = "simplify_loops",
                                     .doc = "use values from before a loop instead of carries that never change",
                                     .run = simplify_loops,
                                     .takes = {.last = Stage::kPropagated}};

}  // namespace shardwise
