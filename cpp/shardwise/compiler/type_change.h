// SPDX-License-Identifier: Apache-2.0
//
// Where a loop's body changes the type of a carry, for the error that names the line:
//
//   ^bb0(%c: f32):
//     %0 = multiply %c, %c : f32
//     %1 = convert %0 : f64          here: it reads a value of the carry's dtype, and the result of the body comes from it
//     %2 = add %1, %w : f64          alone through values of other dtypes
//     return %2
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// The result of the first op of the region on the way from the carry to the result whose type differs. If the dtypes
// are equal, shapes are compared. The result itself where no such way leads to it.
ValueId first_change_of_type(const Module& module, RegionId region, ValueId carry, ValueId result);

}  // namespace shardwise
