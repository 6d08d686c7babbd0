// SPDX-License-Identifier: Apache-2.0
//
// Gradients of ops with regions, in a reverse walk:
//
//   %h:2 = while(%i = 0, %c = %h0)                    %h:3 = while(%i = 0, %c = %h0, %saved = zeros)
//   cond { %i < 10 }                                  cond { %i < 10 }
//   do { %1 = tanh %c; return %i + 1, %1 }            do { …; %2 = dynamic_update_slice %saved, %1, %i; return … }
//
//                                                     %g:2 = while(%b = 0, %ct = %ct_of_h)
//                                                     cond { %b < 10 }
//                                                     do { %t = 9 - %b; %1 = dynamic_slice %h#2, %t
//                                                          %2 = %ct * (1 - %1²); return %b + 1, %2 }
//
// The values that the gradient of a body reads (backward_split.h) become results of the op: one row for each trip of a
// loop, and zeros in the branches that do not make them. Loop invariants are read from around the loop. A cotangent of
// a row that the body reads is added only to that row.
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

class ReverseWalk;

// UnsupportedError for a loop whose number of trips is unknown.
void differentiate_loop(ReverseWalk& walk, OpId loop);
void differentiate_branches(ReverseWalk& walk, OpId branches);

// The gradient of a checkpoint recomputes the region, after an optimization_barrier, except for the values that the
// policy (ops/sharding/inlined_regions.h) saves.
bool is_checkpoint(const Module& module, OpId op);
void differentiate_checkpoint(ReverseWalk& walk, OpId checkpoint);

// An op whose derivative is given (given_derivatives.h).
bool has_given_derivative(const Module& module, OpId op);
void differentiate_given(ReverseWalk& walk, OpId op);

}  // namespace shardwise
