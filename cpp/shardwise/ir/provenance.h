// SPDX-License-Identifier: Apache-2.0
//
// The record of propagation. It appends one PropagationStep (24 bytes) whenever a value's sharding grows;
// everything else is worked out when somebody asks (axis_history.h, explain.h).
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   steps   {dot_general, %0, tensor 2, none -> [{"data", ?}, {?}], round 2}
//           {tanh, %1, tensor 1, none -> [{"data", ?}, {?}], round 2}
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/ir/compile_options.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// Tensor `tensor` of the op (operands first, then results), which is `value`, changed its sharding.
// Without an op, the step ties result `tensor` of main to the returned value: `value` set means the value changed,
// unset means the result changed. Steps that defer or release dims by priority have no op; their round is kByPriority.
struct PropagationStep {
  static constexpr uint8_t kByPriority = 0xFF;
  OpId op = {};
  ValueId value = {};
  uint32_t tensor = 0;
  ShardingId before = {};
  ShardingId after = {};
  uint8_t round = 0;  // propagation_rounds.h
  bool first = true;  // of a visit of the op: the steps of one visit saw the same shardings
  uint16_t turn = 0;  // of a user's priority, an index of Provenance::priorities
};

struct Provenance {
  std::vector<PropagationStep> steps;                // in order of time
  std::vector<int64_t> priorities{0};                // a user's, in the order of their turns (user_priorities.h)
  std::vector<std::pair<OpId, DataFlowEdge>> edges;  // what the steps of data-flow edges connected; in the order of ops
  bool edges_are_sunk = false;                       // their ops are gone; the steps name the owner of each edge
  std::vector<ShardingId> initial;                   // by value index: what the user wrote
  std::vector<ShardingId> initial_results;           // what the user wrote on the results of main
  std::set<std::string> called;                      // functions whose calls are sdy.named_computation in the program
  CompileOptions options;                            // how shardings propagated
};

// Notes what the user wrote, before propagation adds to it.
void record_annotations(const Module& module, Provenance& provenance);

}  // namespace shardwise
