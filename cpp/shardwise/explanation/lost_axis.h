// SPDX-License-Identifier: Apache-2.0
//
// One entry of an explanation: an axis that a value could have had, and why it has not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/explanation/inquiry.h"

namespace shardwise {

// An axis that a neighbour has on the same factor, and that this value did not get.
struct LostAxis {
  AxisRef axis;
  std::string axis_text;
  int64_t dim = 0;
  std::string op;     // the op that would have carried it
  std::string value;  // what a text calls its results, or ""
  std::string location;
  std::string reason;              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule;                // what decided, in a few words: "closed dims stay as they are"
  std::vector<AxisOrigin> winner;  // what it lost to; empty where no other axis is in its place
  std::optional<Annotation> closed_by;
};

}  // namespace shardwise
