// SPDX-License-Identifier: Apache-2.0
//
// Merges an exchange of an exchange into one, where that costs no more:
//
//   roll by 3, of 64 rows on x=8      %1 = exchange %0, offset 61            x[61:], one row for each of three devices
//                                     %2 = exchange %1, %0, offsets 0, -3    it in front of the others
//                                ->   %2 = exchange %0, %0, offsets 61, -3
//
//   65 rows between two times 64      %1 = exchange %0, %0, offsets 0, -1    x and its last row, in tiles of 17 rows
//   on x=4                            %2 = exchange %1, offset 1             [1:65]
//                                ->   %2 = exchange %0, %0, offsets 1, 0     one row for each of three devices
#pragma once

#include "shardwise/ir/module.h"
#include "shardwise/partition/exchanges/exchange_rewrite.h"

namespace shardwise {

// Returns the number of merged exchanges, and records the decisions in `choices`. Their operands may be unused now.
int64_t merge_exchanges(Module& module, ExchangeChoices& choices);

}  // namespace shardwise
