// SPDX-License-Identifier: Apache-2.0
//
// The list of passes: those of the pipeline, from the traced program to the program of one device, and others that show
// a part of one or what a pass of Shardy's does. `shardwise opt`, golden texts and tests know passes from this list
// alone.
//
//   for (const Pass& pass : pipeline()) std::cout << pass.name;    // inline_calls, simplify, propagate, assign, …
//
//   CompileUnit unit(parse(text, context));
//   run_passes(unit, passes_called(std::vector<std::string>{"propagate-basic", "assign"}), {.verify = true});
//
// '-' and '_' mean the same in a name. `localize` leaves more than a text shows: the parts of global values that
// inner values hold (Module::part). `optimize_collectives` reads them when both are asked for together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/ir/pass.h"

namespace shardwise {

std::span<const Pass> pipeline();
std::span<const Pass> named_passes();                // those of the pipeline in its order, then the others
const Pass* find_named_pass(std::string_view name);  // null for a name that no pass has

// ShardingError for an unknown name.
std::vector<Pass> passes_called(std::span<const std::string> names);

}  // namespace shardwise
