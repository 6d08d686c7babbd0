// SPDX-License-Identifier: Apache-2.0
//
// The axes that neighbors of a value have and the value does not, and the reason for each. The answer is the decision
// of propagation itself: the last visit of the op between is repeated with an observer (visit_replay.h).
//
//   %0 = dot_general %x, %w        %x: [{"a"}, {}]   %w: [{}, {"a"}]   %0: [{}, {"a"}]
//
//   lost_axes(history, tracer, %0)
//       dim 0 did not get "a": "the axis shards result 0 dim 1", by the rule "… the larger tensor goes first"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/explanation/axis_tracer.h"

namespace shardwise {

struct LostAxis {
  std::string axis_text;
  int64_t dim = 0;
  Verdict verdict = Verdict::kTaken;    // of propagation, about this value or the tensor that is in the way
  Label carrier = {};                   // the op that would have carried it
  std::string reason = {};              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule = {};                // "closed dims take no further axes"
  std::vector<AxisOrigin> winner = {};  // the axes that it lost to
  std::optional<Annotation> closed_by = {};
};

std::vector<LostAxis> lost_axes(AxisHistory& history, AxisTracer& tracer, ValueId value);

}  // namespace shardwise
