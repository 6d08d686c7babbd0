// SPDX-License-Identifier: Apache-2.0
//
// Writes down which values are computed again behind the peak of the memory (choice/memory/peak_values.h):
//
//   %w1 = all_gather %0                         %w1 = all_gather %0
//   %h = dot_general %x, %w1                    %h = dot_general %x, %w1
//   …                                     ->    …
//   %dx = dot_general %dy, %w1                  %2 = all_gather %0 {shardwise.again = 1 : i64}
//                                               %dx = dot_general %dy, %2
//
// A copy stands as near to its first reader as possible. The readers in front of the peak keep the first value. A scan that
// reads rows of a stack gets copies of what made them, and reads the rows of which these are made.
#pragma once

#include <vector>

#include "shardwise/choice/memory/peak_values.h"
#include "shardwise/ir/module.h"

namespace shardwise {

void write_repeated_values(Module& local, const LiveSteps& steps, const PeakValues& peak, const Saved& saved);

}  // namespace shardwise
