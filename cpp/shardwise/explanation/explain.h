// SPDX-License-Identifier: Apache-2.0
//
// Why a value is sharded as it is: for each axis the annotation that it comes from and the ops between; for each axis
// that a neighbor has and the value does not, the reason.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   Explainer(module, provenance).explain(%1)  ->  axis "data" on dim 0
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
  std::string suggestion = {};               // for an unsharded value: an annotation that would split it
  std::optional<Annotation> to_change = {};  // the annotation that the suggestion would replace
};

// Explains values of one propagated program. Later questions reuse earlier results.
class Explainer {
 public:
  Explainer(const Module& module, const Provenance& provenance);

  Explanation explain(ValueId value);
  const std::vector<PathStep>& paths() const { return tracer_.paths(); }  // of all explanations so far

 private:
  MeshPtr mesh_around(ValueId value) const;
  void suggest(const TensorSharding& now, Explanation& result);

  const Module& module_;
  AxisHistory history_;
  AxisTracer tracer_;
};

}  // namespace shardwise
