// SPDX-License-Identifier: Apache-2.0
//
// Describes a permute of shards as a permutation of devices, by two lists of axes:
//
//   [{"x"}, {}] -> [{"y"}, {}] on x=4, y=4:            from = {"x", "y"}, to = {"y", "x"}
//   [{"x", "y"}, {}] -> [{"y", "x"}, {}], any sizes:   from = {"x", "y"}, to = {"y", "x"}
//
// The device at position i along `to` receives from the device at position i along `from` (row-major, with equal
// products). All their other digits are equal. Both lists contain the same digits, cut as each side needs them.
#pragma once

#include <span>

#include "shardwise/mesh/axis.h"

namespace shardwise {

struct PermuteAxes {
  AxisList from, to;
};

// Every dim has the same number of shards before and after. Common axes at the start or the end of a dim are left out.
PermuteAxes permute_axes(std::span<const AxisList> from_dims, std::span<const AxisList> to_dims);

}  // namespace shardwise
