// SPDX-License-Identifier: Apache-2.0
//
// Names the ops that make a gradient, for reports. The op that a collective belongs to is rarely the last one:
//
//   %1 = dot_general %x, %ct                loc("gradient of w")    also inside loops, branches and computations
//   %2 = transpose %1                       loc("gradient of w")
//   %3 = dot_general %x, %2 …               an addend: the same
//   %4 = add %2, %3                         loc("gradient of w")    the gradient of w
//
// The names end at ops that compute the gradient from cotangents of other values, here dot_general, and at values that
// others read as well.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

std::string gradient_name(std::string_view argument);  // "gradient of w"
bool is_gradient_name(std::string_view name);

// One name per gradient; "" names nothing. Only ops from `first_made` on belong to the gradients.
void name_gradients(Module& module, std::span<const ValueId> gradients, std::span<const std::string> names,
                    uint32_t first_made);

}  // namespace shardwise
