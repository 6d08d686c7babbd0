// SPDX-License-Identifier: Apache-2.0
//
// The positions of devices on two meshes over the same devices. Meshes that do not nest have no closed form: the
// devices are counted once for each pair of meshes and axes, and the counts are kept for the process.
//
//   main x=2, y=3; other a=3, b=2       a value [{"x"}] on main becomes [{"a"}] on other
//   positions (a, x) of the 6 devices   (0, 0) (0, 0) (1, 0) (1, 1) (2, 1) (2, 1)
//   dims                                {(0, 0) (1, 0) (1, 1) (2, 1)}, and 4 different devices
#pragma once

#include <memory>
#include <vector>

#include "shardwise/mesh/exchange.h"

namespace shardwise {

struct MeshPairPositions {
  struct Pair {
    int64_t tile = 0, shard = 0;
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };
  std::vector<std::vector<Pair>> dims;  // different pairs, for each dim
  std::vector<uint32_t> devices;        // different devices: an index into each dim's pairs, one after the other
};

// The positions of one operand of a map across meshes. Any number of threads may ask.
std::shared_ptr<const MeshPairPositions> positions_of_mesh_pair(const ExchangeMap& map, size_t operand);

}  // namespace shardwise
