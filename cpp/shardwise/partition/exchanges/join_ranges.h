// SPDX-License-Identifier: Apache-2.0
//
// Joins exchanges of one value:
//
//   several ranges               the nine of a 3x3 stencil: one tile with its halo, and nine local slices of it
//   a part of an all_gather      x[:1] where all devices gather x: a local slice
//
// Ranges are joined only if the devices receive less, and hold no more.
#pragma once

#include "shardwise/ir/module.h"
#include "shardwise/partition/exchanges/exchange_rewrite.h"

namespace shardwise {

// Returns the number of exchanges that became local, and records the decisions in `choices`.
int64_t join_ranges(Module& module, ExchangeChoices& choices);

}  // namespace shardwise
