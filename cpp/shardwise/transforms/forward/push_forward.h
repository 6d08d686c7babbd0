// SPDX-License-Identifier: Apache-2.0
//
// The tangents of one op's results. An op has one derivative rule, OpDef::vjp, and this is its transpose:
//
//   %y = tanh %x           vjp of a cotangent %u:              %2 = multiply %u, %1              %1 = 1 - %y²
//                          vjp of that, of a cotangent %t:     %3 = multiply %t, %1              by %u
//
// A vjp is linear in %u, so its own gradient by %u does not depend on %u: %3 is the tangent of %y for the tangent %t of
// %x, and %2 is dropped. An op that is linear in its operands (OpDef::linear) is its own derivative:
//
//   %y = dot_general %a, %b                %1 = dot_general %ta, %b;  %2 = dot_general %a, %tb;  %3 = add %1, %2
//   %y = transpose %a                      %1 = transpose %ta
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// `tangents`: by operand; none: zeros. At least one is given. Returns one for each result, or none.
std::vector<ValueId> push_forward(Builder& builder, const OpView& op, std::span<const ValueId> tangents);

// Moves the ops of a region that no op owns to the builder's region, if `wanted` depends on them.
void move_needed_ops(Builder& builder, RegionId from, std::span<const ValueId> wanted);

}  // namespace shardwise
