// SPDX-License-Identifier: Apache-2.0
//
// The digits of two placements: pieces of axes that both use whole or not at all.
//
//   [{"x", "y"}, {}] -> [{"x"}, {"y"}] on x=4, y=2:   digits 0 = "x", 1 = "y";   dims {0 1}, {} -> {0}, {1}
#pragma once

#include <optional>

#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

// Axes are cut where a placement cuts them (kGiven), and also where the current shards of a dim end inside an axis that
// the dim needs (kAligned). Neither depends on the size of the axes.
enum class Cuts : uint8_t { kGiven, kAligned };
// Returns none when the two placements cut an axis in ways that no single split has, or in too many digits.
std::optional<Digits> digits_of(const Placement& from, const Placement& to, Cuts cuts);

}  // namespace shardwise
