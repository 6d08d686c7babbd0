// SPDX-License-Identifier: Apache-2.0
//
// Appends reverse-mode derivatives as ops of the same graph:
//
//   %0 = sine %x                                  outputs {%1}, cotangents {%one}, wrt {%x}
//   %1 = multiply %0, %0
//                                                 %2 = multiply %one, %0;  %3 = multiply %one, %0;  %4 = add %2, %3
//                                                 %5 = cosine %x;  %6 = multiply %4, %5             returns {%6}
//
// OpDef::vjp turns the cotangents of an op's results into those of its operands; a value with several uses gets their
// sum. Only ops between `wrt` and the outputs are visited, and new ops get the location of the op that they
// differentiate, without its name (name_gradients.h). The result is an ordinary graph, so it can be differentiated again.
// An op that others make up, without a gradient of its own, is expanded in place. Loops and branches:
// differentiate_regions.h.
//
// A value in `wrt` is an independent variable: no cotangent flows through it to the ops that define it. If one value is
// passed for two arguments, or is also used from outside, record the function on stand-ins and substitute them
// afterwards.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {

struct Gradients {
  std::vector<ValueId> values;  // one per wrt value
  // Results of ops of the region that were replaced by others. The ops of the region read the new ones already.
  Redirection replaced;
};

// Appends the gradient to the region of `builder`, which contains outputs and wrt. A cotangent may be none: nothing
// flows into that output. A wrt value that no output depends on gets zeros. Throws DTypeError when a wrt value is not a
// float.
Gradients append_vjp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                     std::span<const ValueId> wrt);

// The same with none in place of zeros. The wrt values may come from around the region.
Gradients append_vjp_without_zeros(Builder& builder, std::span<const ValueId> outputs,
                                   std::span<const ValueId> cotangents, std::span<const ValueId> wrt);

}  // namespace shardwise
