// SPDX-License-Identifier: Apache-2.0
//
// Replaces a call by the ops of its function, if that is small or called once:
//
//   %1 = func.call @f(%0)        ->     the ops of @f, on %0
//   %2 = func.call @layer(%1)           %2 = func.call @layer(%1)
//   %3 = func.call @layer(%2)           %3 = func.call @layer(%2)
//
// The other functions are partitioned and planned once for all their calls. A function is small if its ops, with those
// of the calls that are replaced in it, are at most kMaxInlinedOps. A function that draws from a hidden state
// (stablehlo.rng) is always inlined, because each call draws other numbers. A combiner holds no calls afterwards, and
// no branches (flatten_combiners.h).
//
// A sharding of a result of @f, or of the call's result, becomes a constraint at the call, and so does a sharding of an
// argument. Each call gets its own copy of the ops, so that two calls do not tie their shardings together.
//
// Named computations are inlined, too. A stablehlo.composite counts as a call of its decomposition, and custom calls
// that other ops make up (ApproxTopK) are replaced by these. A chlo.scan becomes a loop, whose body counts like any
// other. Manual computations become ops on global values, with all their calls (manual_regions.h), and tokens empty
// arrays. CallGraph states which programs are rejected, before anything is copied.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// In a Transformer step that JAX lowered, 334 of 337 calls go to functions of at most 12 ops, helpers of its library. A
// higher limit would inline hardly more of these, but small layers as well, which are then compiled once per call.
inline constexpr int64_t kMaxInlinedOps = 12;

// Throws ShardingError for a recursive function, and beyond the limits of CallGraph.
Module inline_calls(Module module, PassContext& context);
inline constexpr Pass kInlineCalls{
    .name = "inline_calls",
    .doc = "inline small functions and those called once; expand composites, manual computations and tokens",
    .run = inline_calls,
    .checks_input = true};

// The same, of a module that is no program yet.
void inline_small_calls(Module& module);

}  // namespace shardwise
