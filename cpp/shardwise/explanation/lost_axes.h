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
  Label carrier = {};                   // the op that would have carried it
  std::string reason = {};              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule = {};                // "closed dims take no further axes"
  std::vector<AxisOrigin> winner = {};  // the axes that it lost to
  std::optional<Annotation> closed_by = {};
};

std::vector<LostAxis> lost_axes(AxisHistory& history, AxisTracer& tracer, ValueId value);

// The axes that barriers block, also if ops between barrier and value would propagate them:
//
//   %1 = sdy.propagation_barrier %0 allowed_direction=NONE        %0: [{"a"}]
//   %2 = tanh %1            dim 0 of %2 did not get "a": "the barrier blocks propagation, and this value is downstream …"
std::vector<LostAxis> lost_behind_barriers(AxisHistory& history, AxisTracer& tracer, ValueId value);

}  // namespace shardwise
