// SPDX-License-Identifier: Apache-2.0
//
// Single elements: a small number of any dtype, and the element that fills a value.
//
//   scalar_of(DType::kF32, 1)        1.0f
//   splat_value(module, zeros)       0, also through a broadcast of a scalar constant; nothing for an argument
#pragma once

#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

// A number of any dtype: a small integer that the dtype can hold.
Scalar scalar_of(DType dtype, int64_t value);
// An integer moved into [0, limit].
int64_t clamped(const Scalar& integer, int64_t limit);
// The element that a value is filled with when it is made by a constant that is a splat, also through a broadcast.
std::optional<Scalar> splat_value(const Module& module, ValueId value);

}  // namespace shardwise
