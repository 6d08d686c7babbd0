// SPDX-License-Identifier: Apache-2.0
//
// Loops that count, as JAX writes scan and fori_loop:
//
//   while(%i = 0, %x = …) cond { return %i < 10 } do { …; return %i + 1, %y }      trip_count: 10
//
// The counter starts at a constant, is compared with a constant, and grows or falls by a constant in each trip.
#pragma once

#include <cstdint>
#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

// None for a loop that does not count, or whose counter would leave its dtype.
std::optional<int64_t> trip_count(const OpView& loop);

}  // namespace shardwise
