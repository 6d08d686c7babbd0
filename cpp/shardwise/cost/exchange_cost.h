// SPDX-License-Identifier: Apache-2.0
//
// The elements that one device receives in an exchange: those of its tile of the result that it does not hold. Knows no
// op.
//
//   reverse of 33 rows in blocks of 5, 8 devices      {5, exact}
#pragma once

#include <span>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

struct ExchangeCost {
  double elements = 0;  // the maximum over devices
  bool exact = true;    // false: an upper bound, because there are too many positions along the axes of a dim
};

// In closed form where one operand is read without strides (tile_overlap.h). A dim whose tiles and shards are along the
// same axes is counted at a few positions (turning_points.h), whatever the number of operands. Others are counted at
// each position along the axes of a dim, or of several dims that share an axis, if there are at most so many. Maps
// across meshes are counted for up to 65,536 devices (mesh_pair.h); beyond, the bound is the tile.
ExchangeCost exchange_cost(const ExchangeMap& map, int64_t most_positions = 65'536);

// The elements that the device at these coordinates receives.
double elements_at(const ExchangeMap& map, const Coordinates& device);
// The most elements that one device receives in all of `maps` together. Positions are compared at turning points, or
// all of them. Beyond `most_positions` the result is an upper bound.
double most_elements(std::span<const ExchangeMap> maps, int64_t most_positions = 4'096);

}  // namespace shardwise
