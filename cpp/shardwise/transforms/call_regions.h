// SPDX-License-Identifier: Apache-2.0
//
// Calls as regions, for propagation, and back:
//
//   func.func private @f …       regions     %1 = sdy.named_computation<"f">(%0) (%arg) { the ops of @f }
//
// A sharding of a result of @f, or of the call's result, becomes the sharding of the region's result; a sharding of an
// argument stays with the region's argument. Each call gets its own copy of the ops. Propagation works on regions, and
// then outlines them: calls with equal shardings share a function, others get new names, as in Shardy:
//
//   outline    %1 = func.call @f(%0);  %2 = func.call @f_0(%x)
#pragma once

#include <set>
#include <string>

#include "shardwise/ir/module.h"

namespace shardwise {

// The names of the functions that were called. Throws ShardingError as CallGraph does.
std::set<std::string> calls_to_regions(Module& module);
void regions_to_calls(Module& module, const std::set<std::string>& names);

// Whether the op is the region of a call of one of these functions; and the name of an op in the program with its
// calls: "stablehlo.tanh", or "func.call" for such a region.
bool is_called_region(const Module& module, const std::set<std::string>& called, OpId op);
std::string name_with_calls(const Module& module, const std::set<std::string>& called, OpId op);

}  // namespace shardwise
