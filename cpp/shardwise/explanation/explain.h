// SPDX-License-Identifier: Apache-2.0
//
// Why a value is sharded as it is: for each axis the annotation that it comes from and the ops between; for each axis
// that a neighbor has and the value does not, what kept it away.
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

#include "shardwise/explanation/lost_axes.h"

namespace shardwise {

struct Explanation {
  ValueId value;
  std::string name = {};      // in its text, or given by sw.name or loc("h"(…)), or ""
  std::string sharding = {};  // final, as text
  std::vector<AxisOrigin> axes = {};
  std::vector<LostAxis> lost = {};
  // For an unsharded value: a suggested annotation, and the existing one that it would replace.
  std::optional<TensorSharding> suggestion = {};
  std::optional<Annotation> to_change = {};
};

Explanation explain(ExplanationContext& context, ValueId value);
Explanation explain(const Module& module, const Provenance& provenance, ValueId value);

}  // namespace shardwise
