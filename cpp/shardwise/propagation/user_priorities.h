// SPDX-License-Identifier: Apache-2.0
//
// User priorities: an axis of priority 1 waits until everything of priority 0 has been propagated.
//
//   [{"x"}p1, {"y"}]      before priority 1:  [{}, {"y"}], replicated={"x"}      from then on:  [{"x"}, {"y"}]
//
// A waiting dim is closed and empty, and its axes are reserved: other dims of the tensor cannot use them.
//
// State is what a program updates: arguments of the type and sharding of a result. Weights that are split over the axis of the
// batch would otherwise put their split on what they are multiplied with, and loops keep it.
#pragma once

#include <set>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/propagation/step_recorder.h"

namespace shardwise {

class UserPriorities {
 public:
  UserPriorities(Module& module, StepRecorder& recorder) : module_(module), recorder_(recorder) {}

  // Empties dims of every priority but 0, and removes all priorities.
  void hold_back();
  // Empties the dims of state, which wait for everything else.
  void hold_back_state();
  const std::set<int64_t>& waiting() const { return waiting_; }  // priorities, most urgent first
  void release(int64_t priority);

 private:
  struct Held {
    ValueId value;  // none: result `result` of main
    uint32_t result = 0;
    ShardingId annotation;
  };
  ShardingId& sharding_of(const Held& held);
  void set(const Held& held, const TensorSharding& sharding);
  void hold_back(Held held);
  void hold_back_all(Held held, int64_t priority);

  Module& module_;
  StepRecorder& recorder_;
  std::vector<Held> held_;  // in the order of the program
  std::set<int64_t> waiting_;
};

}  // namespace shardwise
