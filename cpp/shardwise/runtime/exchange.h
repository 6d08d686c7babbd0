// SPDX-License-Identifier: Apache-2.0
//
// Runs an exchange: views, if each tile of the result is part of one shard of this process, else one copy. Processes
// send each other the elements that they lack, one message for each pair:
//
//   process 0 of 2 has rows 0 … 3 of 8, and wants rows 0 … 4:   sends nothing, receives row 4
//   process 1      has rows 4 … 7, and wants rows 4 … 7:        sends row 4
#pragma once

#include <span>

#include "shardwise/mesh/exchange.h"
#include "shardwise/runtime/device_set.h"
#include "shardwise/runtime/processes/transport.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

// `main` as in Communicator::exchange.
Shards exchanged(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map, const Mesh* main);
// The operands are the shards of `devices`, and so is the result.
Shards exchanged(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map, const Mesh* main,
                 const DeviceSet& devices, Transport& transport);

}  // namespace shardwise
