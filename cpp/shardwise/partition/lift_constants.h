// SPDX-License-Identifier: Apache-2.0
//
// Moves constants of branches and loops to the beginning of their function, so that equal ones become one:
//
//   %0 = if %p {                                      %c = constant dense<[0.5, 0.25]>
//     %c = constant dense<[0.5, 0.25]>                %0 = if %p {
//     return multiply %x, %c                     ->     return multiply %x, %c
//   } else {                                          } else {
//     %c = constant dense<[0.5, 0.25]>                  return add %x, %c
//     return add %x, %c                               }
//   }
//
// A constant is a view of the program, which costs no time where it stands. Those with one number stay: each engine has
// them as literals.
#pragma once

#include <cstdint>

#include "shardwise/ir/module.h"

namespace shardwise {

// Returns how many it moved.
int64_t lift_constants(Module& module);

}  // namespace shardwise
