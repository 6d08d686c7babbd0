// SPDX-License-Identifier: Apache-2.0
//
// The table of refusals (ir/refusals.h), and its sentences in errors:
//
//   refused_because(*refusal_of("stablehlo.infeed"))
//   // "can be read, propagated and printed, but not run, because it exchanges data with the host …"
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/refusals.h"

namespace shardwise {

std::span<const Refusal> refusal_table();

std::string refused_because(const Refusal& refusal);  // what must hold, in an error

// Registers the refused targets of custom calls: their definitions raise the error when the program is compiled.
void register_refused_calls();

}  // namespace shardwise
