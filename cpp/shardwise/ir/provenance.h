// SPDX-License-Identifier: Apache-2.0
//
// The record of propagation. It appends one PropagationStep (16 bytes) whenever a value's sharding grows;
// everything else is worked out when somebody asks (axis_history.h, explain.h).
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   steps    {dot_general, %0, [{"data", ?}, {?}], tensor 2}
//            {tanh, %1, [{"data", ?}, {?}], tensor 1}
//   rounds   {priority 0, round 2, from step 0}
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
// unset means the result changed. Steps that defer or release dims by priority have no op.
struct PropagationStep {
  static constexpr uint32_t kMaxTensor = 0x7FFFFFFF;
  OpId op = {};
  ValueId value = {};
  ShardingId after = {};
  uint32_t tensor : 31 = 0;
  bool first : 1 = true;  // of a visit of the op: the steps of one visit saw the same shardings
};
// Most of the cost of recording is the memory that steps touch first (benchmarks/recording.py).
static_assert(sizeof(PropagationStep) == 16);

// The steps from `first_step` on, to the next round. kByPriority: they defer or release dims (user_priorities.h).
struct PropagationRound {
  static constexpr int kByPriority = -1;
  int64_t priority = 0;  // the user's
  int round = 0;         // propagation_rounds.h
  size_t first_step = 0;
};

struct Provenance {
  std::vector<PropagationStep> steps;                // in order of time
  std::vector<PropagationRound> rounds;              // in order of time
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
