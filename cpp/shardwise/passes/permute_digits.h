// SPDX-License-Identifier: Apache-2.0
//
// A permute of shards as a permutation of mesh digits:
//
//   [{"x"}, {}] -> [{"y"}, {}] on x=4, y=4:     from = {"x", "y"}, to = {"y", "x"}
//
// The device with coordinates c along `to` receives from the one with coordinates c along `from`, and the two differ in
// no other digit. Both lists hold the same digits; those that stay in their place are left out.
#pragma once

#include <span>

#include "shardwise/mesh/axis.h"

namespace shardwise {

struct PermuteDigits {
  AxisList from, to;
};

// Every dim has as many shards before as after.
PermuteDigits permute_digits(std::span<const AxisList> from_dims, std::span<const AxisList> to_dims);

}  // namespace shardwise
