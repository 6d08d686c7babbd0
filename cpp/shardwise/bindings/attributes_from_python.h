// SPDX-License-Identifier: Apache-2.0
//
// Python values as attributes; no op is known here:
//
//   3 -> 3 : i64     True -> true     1.5 -> 1.5 : f32     "text"     (1, 2), [] -> array<i64: …>
//   ("a", "b") -> ["a", "b"]
//   EnumValue("stablehlo", "comparison_direction", "LT")     Struct("stablehlo.dot", {...})     ndarray -> dense<…>
//   {"n": 3, "x": 1.5} -> {n = 3 : i64, x = 1.5 : f64}
#pragma once

#include <pybind11/pybind11.h>

#include "shardwise/ir/attribute.h"

namespace shardwise {

Attribute attribute_from_python(pybind11::handle value);
Attrs attrs_from_python(pybind11::handle dict_or_none);
// A constant's elements: a splat (all strides 0) stays one element, everything else is copied.
NdArray constant_from_python(pybind11::handle array);

}  // namespace shardwise
