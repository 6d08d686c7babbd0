// SPDX-License-Identifier: Apache-2.0
//
// Reverse-mode derivatives as ops of the same graph:
//
//   %0 = sine %x                                  outputs {%1}, cotangents {%one}, wrt {%x}
//   %1 = multiply %0, %0
//                                                 %2 = multiply %one, %0;  %3 = multiply %one, %0;  %4 = add %2, %3
//                                                 %5 = cosine %x;  %6 = multiply %4, %5             returns {%6}
//
// Each op says through OpDef::vjp how the cotangents of its results become those of its operands; a value with several
// uses gets the sum. Only ops between `wrt` and the outputs are looked at, and new ops carry the place of the op that
// they are the derivative of. What comes out is a graph like any other, so it can be differentiated again.
//
// A value in `wrt` is a variable of its own: nothing flows through it to what it was made of. Where one value is passed
// for two arguments, or is also used from outside, record the function on stand-ins, and substitute them afterwards.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// Appends the gradient to the region of `builder`, where outputs and wrt live. A cotangent may be none: nothing flows
// into that output. One result per wrt value: zeros where no output depends on it. DTypeError when a wrt value is no
// float.
std::vector<ValueId> append_vjp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                                std::span<const ValueId> wrt);

}  // namespace shardwise
