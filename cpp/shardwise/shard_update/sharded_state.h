// SPDX-License-Identifier: Apache-2.0
//
// What `shard_update` reports of each weight and each state of an optimizer (PassContext::shard_update).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/mesh/sharding.h"

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

// The row of a state that is left whole; `own`: its sharding without the switch.
ShardedState whole_state(const Module& module, ValueId state, const TensorSharding& own, std::string reason);
// "its update computes dot_general at step.py:5, which is neither elementwise nor a norm"
std::string obstacle_text(const Module& module, OpId obstacle);

struct ShardUpdateReport {
  std::vector<ShardedState> states;
};

}  // namespace shardwise
