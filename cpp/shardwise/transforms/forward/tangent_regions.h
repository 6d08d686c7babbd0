// SPDX-License-Identifier: Apache-2.0
//
// Forward mode of ops with regions. Each is replaced by an op that computes values and tangents (tangent_walk.h): a loop
// has a carry more for each carry that depends on a variable, a branch and a checkpoint a result more. The tangent of a
// value that a region captures is captured as well.
#pragma once

#include "shardwise/ir/ids.h"

namespace shardwise {

class TangentWalk;

void push_through_loop(TangentWalk& walk, OpId loop);
void push_through_branches(TangentWalk& walk, OpId branches);
void push_through_checkpoint(TangentWalk& walk, OpId checkpoint);
// An op whose derivative is given (gradient/given_derivatives.h).
void push_through_given(TangentWalk& walk, OpId op);

}  // namespace shardwise
