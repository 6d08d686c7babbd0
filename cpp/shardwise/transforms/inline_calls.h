// SPDX-License-Identifier: Apache-2.0
//
// Calls of functions, replaced by what they call:
//
//   %1 = func.call @f(%0)        inline      the ops of @f, on %0
//   func.func private @f …       regions     %1 = sdy.named_computation<"f">(%0) (%arg) { the ops of @f }
//
// A sharding of a result of @f, or of the call's, is a constraint where it is called, or that of the region's result;
// one of an argument, too, or it stays with the region's argument. Each call gets ops of its own, so that two calls do
// not tie each other's shardings. Propagation works on regions and makes functions of them again: calls that came out
// alike share one, others get new names, as in Shardy:
//
//   outline    %1 = func.call @f(%0);  %2 = func.call @f_0(%x)
//
// A short text can call its way to any size: what would come to more than kMaxExpandedOps ops, or nest
// deeper than kMaxCallDepth with its regions, is refused before anything is copied.
//
// Programs that are to run have their calls and named computations inlined first.
#pragma once

#include <set>
#include <string>

#include "shardwise/ir/pass.h"

namespace shardwise {

inline constexpr int64_t kMaxExpandedOps = int64_t{1} << 24;
inline constexpr int kMaxCallDepth = 256;

// ShardingError for a function that calls itself, and beyond these bounds.
Module inline_calls(Module module, PassContext& context);
inline constexpr Pass kInlineCalls{"inline_calls", "put the ops of functions where they are called", inline_calls};

// The names of the functions that were called.
std::set<std::string> calls_to_regions(Module& module);
void regions_to_calls(Module& module, const std::set<std::string>& names);

}  // namespace shardwise
