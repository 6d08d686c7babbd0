// SPDX-License-Identifier: Apache-2.0
//
// Expands a call or an inlined region into its ops:
//
//   %1 = func.call @f(%0)        append_inlined(builder, op)        the ops of @f, on %0
//
// inline_calls.h replaces the calls of a program; batching and differentiation expand single ones.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// The value, with a constraint if there is a sharding.
ValueId append_constraint(Builder& builder, ValueId value, ShardingId sharding);

// Whether the op is a call or an inlined region: the ops of a function, or of its region, replace it.
bool is_inlined(const Module& module, OpId op);
// Appends these ops to the builder's region, on the operands of `op`; the calls among them stay. Returns its results.
std::vector<ValueId> append_inlined(Builder& builder, const OpView& op);

// The sharding of result `i` of a call, or of a region: that of the op, or else that of the function.
ShardingId sharding_of_call(const Module& module, ValueId result, size_t i, const Function* called);

// Removes private functions that were called and are called no more.
void drop_uncalled(Module& module, const std::set<std::string>& called);

}  // namespace shardwise
