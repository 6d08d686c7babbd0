// SPDX-License-Identifier: Apache-2.0
//
// The elements that a device receives in an exchange of one operand, each dim of which is read in place, shifted or
// reversed. Closed form: the work depends on how axes are cut, not on their sizes.
//
//   (12, 12) on x=3, y=4:  [{"x"}, {"y"}] -> [{"y"}, {"x"}]     12: some device holds nothing of its new tile
//   (16, 16) on x=4, y=4:  [{"x"}, {}]    -> [{}, {"x"}]        48 of 64: each device holds a quarter of its new tile
//
// Tiles and shards start at positions that are linear in the digits of a device's coordinates. So their overlap is
// concave where it is not 0, the product over all dims is log-concave, and the least overlap within a box of digits is
// at one of its corners. All tiles need the same number of elements, but for a few at the borders of the range.
#pragma once

#include <optional>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

// The maximum over devices. Returns none for several operands, strides and holes, for axes that no single split into
// digits covers, and for too many corners.
std::optional<double> elements_received(const ExchangeMap& map);

}  // namespace shardwise
