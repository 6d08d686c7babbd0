// SPDX-License-Identifier: Apache-2.0
//
// One level of propagation at a time, as Shardy's module passes sdy-basic-propagate, sdy-aggressive-propagate, … run it
// on a text: without the steps of `propagate` around it. Dims stay open, and a value that nothing reached has no
// sharding. Users compare single levels with Shardy's; the compiler runs none of them.
#pragma once

#include <span>

#include "shardwise/ir/pass.h"

namespace shardwise {

std::span<const Pass> propagation_levels();

}  // namespace shardwise
