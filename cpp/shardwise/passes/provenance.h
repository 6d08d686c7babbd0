// SPDX-License-Identifier: Apache-2.0
//
// Who put which axis where. Propagation appends one PropagationStep (24 bytes) whenever a value's sharding grows;
// everything else is worked out when somebody asks, by projecting the shardings of that moment through the rule of that
// op again.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   explain(module, provenance, %1)  ->  axis "data" on dim 0
//       origin: argument %x (train.py:8)      path: dot_general operand 0, factor i (train.py:9); tanh (train.py:10)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Tensor `tensor` of the op (operands first, then results), which is `value`, changed its sharding. No op: result
// `tensor` of main spoke to the value returned there; no value either: the value returned spoke to result `tensor` of
// main. A priority that held back or released a dim of `value` has no op, and kByPriority for `tensor`.
struct PropagationStep {
  static constexpr uint32_t kByPriority = 0xFFFFFFFF;
  OpId op = {};
  ValueId value = {};
  uint32_t tensor = 0;
  ShardingId before = {};
  ShardingId after = {};
  uint16_t round = 0;     // propagation_rounds.h
  uint16_t priority = 0;  // a user's, user_priorities.h
};

struct Provenance {
  std::vector<PropagationStep> steps;                // in order of time
  std::vector<std::pair<OpId, DataFlowEdge>> edges;  // what the steps of data-flow edges connected; in the order of ops
  std::vector<ShardingId> initial;                   // by value index: what the user wrote
  std::vector<ShardingId> initial_results;           // what the user wrote on the results of main
};

// One op on the way of an axis, the nearest to its origin first.
struct PathEntry {
  OpId op;               // none: a result annotation of main
  std::string name;      // "stablehlo.dot_general"
  std::string location;  // "train.py:9", or ""
  std::string from;      // "operand 0 dim 1", "result 0 dim 0"
  std::string to;
  FactorId factor = 0;  // of the op's rule
  int round = 0;
  int priority = 0;
};

struct AxisOrigin {
  AxisRef axis;
  std::string axis_text;  // "x" or "x":(1)2, in quotes as in MLIR
  int64_t dim = 0;
  std::string origin;    // "argument x", "sdy.sharding_constraint", "result 1 of main"
  std::string location;  // of the annotation, or ""
  std::vector<PathEntry> path;
};

// An axis that a neighbour has on the same factor, and that this value did not get.
struct LostAxis {
  AxisRef axis;
  std::string axis_text;
  int64_t dim = 0;
  std::string op;  // the op that would have carried it
  std::string location;
  std::string reason;  // "dim is closed", "axis already shards dim 1 of operand 0", …
};

struct Explanation {
  ValueId value;
  std::string name;      // given by sw.name or loc("h"(…)), or ""
  std::string sharding;  // final, as text
  std::vector<AxisOrigin> axes;
  std::vector<LostAxis> lost;
  // Of a value that nothing splits: an annotation of it that would, closed, or none where there is no dim to split.
  std::optional<TensorSharding> suggestion;
};

std::string argument_text(const Module& module, ValueId argument);  // "argument x", or "argument 0" without a name

// Notes what the user wrote, before propagation adds to it.
void record_annotations(const Module& module, Provenance& provenance);

Explanation explain(const Module& module, const Provenance& provenance, ValueId value);

}  // namespace shardwise
