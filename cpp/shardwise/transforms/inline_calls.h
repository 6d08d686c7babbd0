// SPDX-License-Identifier: Apache-2.0
//
// Replaces calls by the functions that they call:
//
//   %1 = func.call @f(%0)        inline      the ops of @f, on %0
//   func.func private @f …       regions     %1 = sdy.named_computation<"f">(%0) (%arg) { the ops of @f }
//
// A sharding of a result of @f, or of the call's result, becomes a constraint at the call, or the sharding of the
// region's result. A sharding of an argument also becomes a constraint, or stays with the region's argument. Each call
// gets its own copy of the ops, so that two calls do not tie their shardings together. Propagation works on regions,
// and then outlines them: calls with equal shardings share a function, others get new names, as in Shardy:
//
//   outline    %1 = func.call @f(%0);  %2 = func.call @f_0(%x)
//
// Nested calls can make a short text arbitrarily large. A program that would exceed kMaxExpandedOps ops, or nest deeper
// than kMaxCallDepth including its regions, is rejected before anything is copied.
//
// Calls and named computations of programs that run are inlined first. A stablehlo.composite then counts as a call of its
// decomposition.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

inline constexpr int64_t kMaxExpandedOps = int64_t{1} << 24;
inline constexpr int kMaxCallDepth = 256;

// Throws ShardingError for a recursive function, and beyond these limits.
Module inline_calls(Module module, PassContext& context);
inline constexpr Pass kInlineCalls{.name = "inline_calls",
                                   .doc = "put the ops of functions where they are called",
                                   .run = inline_calls,
                                   .checks_input = true};

// Whether the op is a call or a named computation: the ops of a function, or of its region, replace it.
bool is_inlined(const Module& module, OpId op);
// Appends these ops to the builder's region, on the operands of `op`; the calls among them stay. Returns its results.
std::vector<ValueId> append_inlined(Builder& builder, const OpView& op);

// The names of the functions that were called.
std::set<std::string> calls_to_regions(Module& module);
void regions_to_calls(Module& module, const std::set<std::string>& names);

// Whether the op is the region of a call of one of these functions; and the name of an op in the program with its
// calls: "stablehlo.tanh", or "func.call" for such a region.
bool is_called_region(const Module& module, const std::set<std::string>& called, OpId op);
std::string name_with_calls(const Module& module, const std::set<std::string>& called, OpId op);

}  // namespace shardwise
