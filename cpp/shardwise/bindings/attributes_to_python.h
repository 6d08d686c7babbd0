// SPDX-License-Identifier: Apache-2.0
//
// Attributes as Python values, which attributes_from_python.h reads back where an op takes them:
//
//   3 : i64 -> 3     1.5 : f32 -> 1.5     array<i64: 1, 2> -> (1, 2)     dense<…> -> read-only ndarray     unit -> None
//   #stablehlo<comparison_direction LT> -> EnumValue     #stablehlo.dot<…> -> Struct     {"x"} -> Axes
//   @mesh -> Symbol
#pragma once

#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include "shardwise/ir/attribute.h"

namespace shardwise {

// As stubs show it. Elements of lists and dictionaries are attributes, too.
using AttributeValue =
    pybind11::typing::Union<pybind11::none, bool, int64_t, double, pybind11::str,
                            pybind11::typing::Tuple<pybind11::object, pybind11::ellipsis>,
                            pybind11::typing::Dict<pybind11::str, pybind11::object>, pybind11::array, EnumAttr,
                            StructAttr, Symbol, AxesAttr, RuleAttr, TensorType, TensorSharding>;
using AttributeDict = pybind11::typing::Dict<pybind11::str, AttributeValue>;

pybind11::object attribute_to_python(const Attribute& attribute);
AttributeDict attributes_to_python(const std::vector<NamedAttribute>& entries);

}  // namespace shardwise
