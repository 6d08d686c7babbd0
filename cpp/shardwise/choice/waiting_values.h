// SPDX-License-Identifier: Apache-2.0
//
// The values that a device has only after a product. What moves them is waited for; moves of other values, such as weights, run
// beside the products before them:
//
//   %1 = convert %w        waits for nothing
//   %2 = dot %x, %1        waits
//   %3 = tanh %2           waits
//
// A carry of a loop waits if its entry or what a trip makes of it does; a counter does not. Results of calls and branches wait.
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

std::vector<bool> waiting_values(const Module& module);  // by value

}  // namespace shardwise
