// SPDX-License-Identifier: Apache-2.0
//
// All ops. The registry concatenates the families' tables and contains nothing else.
//
//   register_ops();                       // once per process, before the first graph: lets ir/ find ops by name
//   find_op("stablehlo.add")->traits.elementwise   // true
//   for (const OpDef* def : all_ops()) …
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef* const> all_ops();  // in family order
void register_ops();                      // idempotent

}  // namespace shardwise
