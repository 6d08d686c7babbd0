// SPDX-License-Identifier: Apache-2.0
//
// Where the state of a loop of steps comes from, and where it goes:
//
//   func @main(%w, %xs) {                         argument_behind(%c) = %w
//     %0 = convert %w
//     %1 = scan %xs, %0 { ^bb0(%x, %c): … return %n }
//     return %1                                   states_behind(%1) = {%c}
//   }
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// The argument of main that the argument of a loop's body starts from, behind elementwise ops of one operand at most; else
// none.
ValueId argument_behind(const Module& module, ValueId state);

// The arguments of the bodies of loops that hold, in the next trip, what a loop returns as this value: of an outer loop and of
// the loop within it that makes its next carry.
std::vector<ValueId> states_behind(const Module& module, ValueId result);

}  // namespace shardwise
