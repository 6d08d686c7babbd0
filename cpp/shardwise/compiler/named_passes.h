// SPDX-License-Identifier: Apache-2.0
//
// Every pass that can be asked for by name, on any program: those of the pipeline, and others that show a part of one
// or what a pass of Shardy's does. `shardwise opt`, golden texts and tests know passes from this list alone.
//
//   CompileUnit unit(parse(text, context));
//   run_named_passes(std::vector<std::string>{"propagate-basic", "assign"}, unit);
//
// '-' and '_' mean the same in a name. `localize` leaves more than a text shows: the parts of global values that
// inner values hold (Module::part). `optimize_collectives` reads them when both are asked for together.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/compiler/driver.h"

namespace shardwise {

std::span<const Pass> named_passes();                // those of the pipeline in its order, then the others
const Pass* find_named_pass(std::string_view name);  // null for a name that no pass has

// ShardingError for an unknown name.
std::vector<Pass> passes_called(std::span<const std::string> names);

// Runs them one after another, and verifies the program after each: a level of propagation leaves what it came to, and
// that may be what no rule allows. ShardingError for an unknown name, before any pass runs, and for a program at a
// stage that a pass does not take.
void run_named_passes(std::span<const std::string> names, CompileUnit& unit);

// Runs them so that the shardings which the last of them gives can be explained: the unit keeps the program that it was
// given (`global`) and what it made of it (`propagated`). Called functions are regions in both, since a value of a
// function is explained where it is called.
void run_to_explain(std::span<const std::string> names, CompileUnit& unit);

}  // namespace shardwise
