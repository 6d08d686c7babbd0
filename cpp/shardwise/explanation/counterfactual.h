// SPDX-License-Identifier: Apache-2.0
//
// The effect of an annotation: the program is propagated again without it, by the same pass, compared value by value.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//
//   counterfactuals({module, propagated, kPropagate, context}, explanation of %0)
//       without argument %x: [{}, {}]; 3 other values change
#pragma once

#include "shardwise/explanation/explain.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

// `pass`, which is `propagate` or one of its levels, made `after` of `before`: values and ops keep their numbers.
struct PropagatedProgram {
  const Module& before;
  const Module& after;
  const Pass& pass;
  const PassContext& context;  // of that run
};

struct Counterfactual {
  Annotation without;
  std::string sharding = {};  // of the value
  int64_t others = 0;         // other values whose shardings change
  std::string why_not = {};   // why the annotation cannot be removed, or why the value would not exist
};

// One for each annotation that the value's axes come from, or that kept an axis from it.
std::vector<Counterfactual> counterfactuals(const PropagatedProgram& program, const Explanation& explanation);

}  // namespace shardwise
