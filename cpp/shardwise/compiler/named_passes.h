// SPDX-License-Identifier: Apache-2.0
//
// Every pass that can be asked for by name, on any program: those of the pipeline, and others that show a part of one
// or what a pass of Shardy's does. `shardwise opt`, golden texts and tests know passes from this list alone.
//
//   Program program{.module = parse(text, context)};
//   run_passes(std::vector<std::string>{"propagate-basic", "assign"}, program);
//
// '-' and '_' mean the same in a name. A pass that reads what an earlier one left beside the module (`localize` and
// `optimize_collectives` read layouts) finds it when both are asked for together.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/pass.h"

namespace shardwise {

std::span<const Pass> named_passes();                // those of the pipeline in its order, then the others
const Pass* find_named_pass(std::string_view name);  // null for a name that no pass has

// Runs them one after another, timed, dumped and verified as those of `compile` (pipeline.h). ShardingError for an
// unknown name, before any pass runs, and for a program in a form that a pass does not take (program_form.h).
void run_passes(std::span<const std::string> names, Program& program);

}  // namespace shardwise
