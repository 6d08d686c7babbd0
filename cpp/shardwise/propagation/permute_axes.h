// SPDX-License-Identifier: Apache-2.0
//
// A permute of shards as a permutation of devices, said by two lists of axes:
//
//   [{"x"}, {}] -> [{"y"}, {}] on x=4, y=4:            from = {"x", "y"}, to = {"y", "x"}
//   [{"x", "y"}, {}] -> [{"y", "x"}, {}], any sizes:   from = {"x", "y"}, to = {"y", "x"}
//
// The device at position i along `to` receives from the one at position i along `from` (row-major, and their products
// are equal); the two differ in no other digit. Both lists hold the same digits, cut as each side needs them.
#pragma once

#include <span>

#include "shardwise/mesh/axis.h"

namespace shardwise {

struct PermuteAxes {
  AxisList from, to;
};

// Every dim has as many shards before as after. What both begin or end with in a dim stays where it is and is left out.
PermuteAxes permute_axes(std::span<const AxisList> from_dims, std::span<const AxisList> to_dims);

}  // namespace shardwise
