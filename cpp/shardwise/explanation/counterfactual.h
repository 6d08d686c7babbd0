// SPDX-License-Identifier: Apache-2.0
//
// What an annotation does: the program propagated again without it, by the same pass.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//
//   without(module, propagated, kPropagate, options, {argument x}, %0)     %0: [{}, {}]; 3 other values change
//
// `module` is what the pass was given (`propagate`, or one that is a level of it), so that values and ops have the
// numbers that an explanation of its result has.
#pragma once

#include <optional>

#include "shardwise/explanation/explain.h"
#include "shardwise/ir/pass.h"

namespace shardwise {

struct Counterfactual {
  Annotation without;
  std::string sharding;  // of the value then
  int64_t others = 0;    // values of the program that would be sharded otherwise, without this one
  std::string why_not;   // there is no such program, or the value is not in it: then nothing is counted
};

// What belongs to what an op computes cannot go, as the manual axes of a manual computation; what its shardings say
// besides can. A member of a sharding group leaves it.
Counterfactual without(const Module& module, const Module& propagated, const Pass& pass, const CompileOptions& options,
                       const Annotation& annotation, ValueId value);

// One for every annotation that the value's axes come from, or that kept an axis from it.
std::vector<Counterfactual> counterfactuals(const Module& module, const Module& propagated, const Pass& pass,
                                            const CompileOptions& options, const Explanation& explanation);

}  // namespace shardwise
