// SPDX-License-Identifier: Apache-2.0
//
// The bytes that each device receives in one execution of a collective. A ledger row has their maximum.
//
//   all_reduce of 9 float32 on x=4          x=4: 60, 60, 60, 36      parts of 3, 3, 3 and 0 elements
//   x[10:40] of 64 rows on x=8, exchange    x=8: …
//   all_gather                              the same on all devices
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

struct DeviceBytes {
  MeshPtr mesh;               // of the axes; that of the program if the collective is on another one
  AxisList axes;              // each from its first digit; along the others, all devices receive the same
  std::vector<double> bytes;  // by position along `axes`
  double sum = 0;             // of all devices of the mesh
};

// Returns no axes and no bytes if the axes of the collective have more than `most_positions` positions; then the sum is
// an upper bound.
DeviceBytes device_bytes(const OpView& collective, double most_bytes, int64_t most_positions = 65'536);

}  // namespace shardwise
