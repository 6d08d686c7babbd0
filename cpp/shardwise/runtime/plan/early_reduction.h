// SPDX-License-Identifier: Apache-2.0
//
// Reduces partial results where they are made, if only their reduction reads them:
//
//   %2 = stablehlo.dot_general %0, %1            x = 8 shards the contracting dim     varying {x} → {}
//   %3 = stablehlo.add %sum, %2                  %sum: a carry that is zero at first  varying {x} → {}
//   %5 = "shardwise.all_reduce"(%4) {x}          %4: the carry after the loop         the identity
//
// One product over the merged shards (merge.h) gives the sum of the eight partial products, and one array takes the
// place of eight. All ops between are linear, and every value that joins them is a partial result, too, or neutral.
// Results differ from those of separate shards as those of one long product from the sum of short ones.
#pragma once

#include <unordered_map>

#include "shardwise/runtime/plan/merge.h"
#include "shardwise/runtime/plan/variation.h"

namespace shardwise {

// Returns the digits over which each op reduces its result. Removes these digits from the values that vary along them,
// and marks collectives that have nothing left to reduce.
std::unordered_map<OpId, Reduction> reduce_early(const Module& module, Variation& variation);

}  // namespace shardwise
