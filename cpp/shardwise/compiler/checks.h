// SPDX-License-Identifier: Apache-2.0
//
// Checks a program before the driver runs a pass on it:
//
//   check_stage(kLocalize.name, kLocalize.takes, module);
//   // ShardingError: localize: the program must have been through assign and plan_reshards, got a program at stage
//   //                propagated; run assign and plan_reshards first (at train.py:31)
//
// The passes to run are those of the pipeline that make the missing stages (Pass::makes).
#pragma once

#include <string_view>

#include "shardwise/ir/pass.h"

namespace shardwise {

// ShardingError, with `what` as its subject, for a program at another stage, or with collectives that only a later
// stage has.
void check_stage(std::string_view what, StageRange takes, const Module& module);

// UnsupportedError or DTypeError, with its place, for an op or value that can be propagated and not run: texts hold
// such ops and dtypes. Ops without a kernel must have been legalized.
void check_runnable(const Module& module);

// Checks preconditions of the passes after inline_calls that a text or an annotation may violate. An op needs a kernel
// or a decomposition.
void check_input(const Module& module);

}  // namespace shardwise
