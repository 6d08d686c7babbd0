// SPDX-License-Identifier: Apache-2.0
//
// What varies along the axes of a manual computation, though the shardings of its results do not name these:
//
//   %1:2 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, []>]
//          manual_axes={"x"} (%a: tensor<4xf32>) {
//     %2 = stablehlo.sine %a                     varies along {x}
//     %3 = stablehlo.reduce %2 …                 varies along {x}: each device has the sum of its own rows
//     return %2, %3                              result 1 does not name x, so that its devices disagree
//   }
//
// Inputs vary along the manual axes of their shardings, constants along none. Ops join their operands, collectives
// remove or add the axes of their groups, and loops are followed to a fixed point (batch_dependence.h).
#pragma once

#include <string>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// For each result of a manual computation, the manual axes along which its value varies and which its sharding does not
// name, in mesh order. `around` are the manual axes of the computations around it, by name. Axes of size 1 do not count.
std::vector<std::vector<std::string>> undeclared_axes(const OpView& op, const std::vector<std::string>& around);

}  // namespace shardwise
