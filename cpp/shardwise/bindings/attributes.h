// SPDX-License-Identifier: Apache-2.0
//
// Python values as attributes, and back; no op is known here:
//
//   3 <-> 3 : i64     True <-> true     1.5 <-> 1.5 : f32     "text" <-> "text"     (1, 2), [] -> array<i64: …>
//   ("a", "b") -> ["a", "b"]            array<i64: 1, 2> -> (1, 2)                  unit -> None
//   EnumValue("stablehlo", "comparison_direction", "LT") <-> #stablehlo<comparison_direction LT>
//   Struct("stablehlo.dot", {...}) <-> #stablehlo.dot<…>     Axes <-> {"x"}     Symbol <-> @mesh
//   ndarray <-> dense<…> (read-only)    {"n": 3, "x": 1.5} -> {n = 3 : i64, x = 1.5 : f64}
#pragma once

#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include "shardwise/ir/attribute.h"

namespace shardwise {

Attrs attrs_from_python(pybind11::handle dict_or_none);
// A constant's elements: a splat (all strides 0) stays one element, everything else is copied.
NdArray constant_from_python(pybind11::handle array);

// As stubs show it. Elements of lists and dictionaries are attributes, too.
using AttributeValue =
    pybind11::typing::Union<pybind11::none, bool, int64_t, double, pybind11::str,
                            pybind11::typing::Tuple<pybind11::object, pybind11::ellipsis>,
                            pybind11::typing::Dict<pybind11::str, pybind11::object>, pybind11::array, EnumAttr,
                            StructAttr, Symbol, AxesAttr, RuleAttr, TensorType, TensorSharding>;
using AttributeDict = pybind11::typing::Dict<pybind11::str, AttributeValue>;

AttributeDict attributes_to_python(const std::vector<NamedAttribute>& entries);

}  // namespace shardwise
