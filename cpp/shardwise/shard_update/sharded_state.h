// SPDX-License-Identifier: Apache-2.0
//
// What `shard_update` reports of each weight and each state of an optimizer (PassContext::shard_update).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardwise {

// One weight or state: a row of the report.
struct ShardedState {
  std::string name = {};    // of the argument, or ""
  std::string type = {};    // "tensor<64x32xf32>"
  std::string layout = {};  // "[{\"data\"}, {}]"; of a whole state its sharding without the switch
  int64_t group = 1;        // devices that the update is split over
  int64_t shard_bytes = 0;
  double padding = 1.0;       // stored elements over elements
  bool is_weight = false;     // the forward pass reads it
  std::string gathered = {};  // the dtype in which the forward pass receives it; "" for none
  std::string reason = {};    // why it is whole, split over a smaller group, or gathered wide
  std::string location = {};  // of the argument
};

struct ShardUpdateReport {
  std::vector<ShardedState> states;
};

}  // namespace shardwise
