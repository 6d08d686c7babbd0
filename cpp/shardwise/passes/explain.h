// SPDX-License-Identifier: Apache-2.0
//
// Why a value is sharded as it is: for every axis the annotation that it comes from and the ops between; for every axis
// that a neighbour has and the value has not, what kept it away.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   explain(module, provenance, %1)  ->  axis "data" on dim 0
//       origin: argument %x (train.py:8)      path: dot_general operand 0, factor i (train.py:9); tanh (train.py:10)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/passes/axis_history.h"

namespace shardwise {

// One op on the way of an axis, the nearest to its origin first.
struct PathEntry {
  OpId op;               // none: a result annotation of main
  std::string name;      // "stablehlo.dot_general"
  std::string location;  // "train.py:9", or ""
  std::string from;      // "operand 0 dim 1", "result 0 dim 0"
  std::string to;
  std::string factor;    // of the op's rule, as its text calls it: "i"
  int round = 0;         // propagation_rounds.h
  int64_t priority = 0;  // a user's
};

// What a user said about a value, or about a result of main.
struct Annotation {
  Holder holder;         // neither value nor op: a result of main
  OpId op;               // that says how its operands are sharded
  std::string text;      // "argument x", "sdy.sharding_constraint", "result 1 of main"
  std::string location;  // of it, or ""
  friend bool operator==(const Annotation& a, const Annotation& b) { return a.holder == b.holder && a.op == b.op; }
};

struct AxisOrigin {
  AxisRef axis;
  std::string axis_text;  // "x" or "x":(1)2, in quotes as in MLIR
  int64_t dim = 0;
  Annotation origin;
  std::vector<PathEntry> path;
};

// An axis that a neighbour has on the same factor, and that this value did not get.
struct LostAxis {
  AxisRef axis;
  std::string axis_text;
  int64_t dim = 0;
  std::string op;  // the op that would have carried it
  std::string location;
  std::string reason;              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule;                // what decided, in a few words: "closed dims stay as they are"
  std::vector<AxisOrigin> winner;  // what it lost to; empty where no other axis is in its place
  std::optional<Annotation> closed_by;
};

struct Explanation {
  ValueId value;
  std::string name;      // given by sw.name or loc("h"(…)), or ""
  std::string sharding;  // final, as text
  std::vector<AxisOrigin> axes;
  std::vector<LostAxis> lost;
  // Of a value that nothing splits: an annotation of it that would (suggested_sharding.h), and the one that it has now
  // and that this would have to take the place of.
  std::optional<TensorSharding> suggestion;
  std::optional<Annotation> to_change;
};

std::string argument_text(const Module& module, ValueId argument);  // "argument x", or "argument 0" without a name

Explanation explain(const Module& module, const Provenance& provenance, ValueId value);

}  // namespace shardwise
