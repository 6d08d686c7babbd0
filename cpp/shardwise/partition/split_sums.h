// SPDX-License-Identifier: Apache-2.0
//
// A sum that is completed for one user only, which takes a part of it:
//
//   %1 = sdy.reshard %0 <[{}, {}]>            %0: [{}, {}], unreduced={"x"}; an annotation asks for %1
//   %2 = sdy.reshard %1 <[{"x"}, {}]>    ->   %2 = sdy.reshard %0 <[{"x"}, {}]>
//
// The all_reduce becomes a reduce_scatter, as of the gradients of weights that a loss gathers by an annotation. A result of
// the program that is %1 itself stays.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void split_sums(Module& assigned);

}  // namespace shardwise
