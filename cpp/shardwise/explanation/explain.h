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

#include "shardwise/explanation/inquiry.h"
#include "shardwise/explanation/lost_axis.h"

namespace shardwise {

struct Explanation {
  ValueId value;
  std::string name;      // in its text, or given by sw.name or loc("h"(…)), or ""
  std::string sharding;  // final, as text
  std::vector<AxisOrigin> axes;
  std::vector<LostAxis> lost;
  // Of a value that nothing splits: an annotation of it that would (suggested_sharding.h), and the one that it has now
  // and that this would have to take the place of.
  std::optional<TensorSharding> suggestion;
  std::optional<Annotation> to_change;
};

Explanation explain(Inquiry& inquiry, ValueId value);
Explanation explain(const Module& module, const Provenance& provenance, ValueId value);

}  // namespace shardwise
