// SPDX-License-Identifier: Apache-2.0
//
// Runs an exchange whose operands are on one mesh and whose result is on another, over the same devices. A device takes
// what it holds itself; else a device of the same process sends, or one of those that hold the elements, in turn.
#pragma once

#include <span>

#include "shardwise/mesh/exchange.h"
#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/processes/transport.h"

namespace shardwise {

// The shards of `devices`, indexed by the axes of `main`. `transport` may be null if these are all.
Shards exchanged_across_meshes(std::span<const Shards> operands, const ExchangeMap& map, const Mesh& main,
                               const DeviceSet& devices, Transport* transport);

}  // namespace shardwise
