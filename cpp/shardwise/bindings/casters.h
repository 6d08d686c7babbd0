// SPDX-License-Identifier: Apache-2.0
//
// Converts dtypes, arrays and types between Python and C++.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include "shardwise/base/ndarray.h"

namespace shardwise {

// The types that stubs show: a shape that Python gets, and one that it passes.
using ShapeTuple = pybind11::typing::Tuple<pybind11::int_, pybind11::ellipsis>;
using ShapeLike = pybind11::typing::Iterable<pybind11::int_>;

DType dtype_from_python(std::string_view name);  // NumPy's name; DTypeError for another
pybind11::object numpy_dtype_object(DType dtype);

// A view of the array's memory that keeps the array alive.
NdArray from_numpy(const pybind11::array& array);
NdArray owned_copy(const NdArray& array);
// A read-only view of the buffer, which it keeps alive.
pybind11::array to_numpy(const NdArray& array);

// Throws ShapeError that names `what` unless the value is a 64-bit integer.
int64_t integer_from_python(std::string_view what, pybind11::handle value);
template <class Tuple = pybind11::tuple, class Range, class Convert>
Tuple tuple_of(const Range& range, Convert convert) {
  Tuple items(range.size());
  for (size_t i = 0; i < range.size(); ++i) items[i] = convert(range[i]);
  return items;
}
ShapeTuple shape_tuple(DimSpan shape);
Dims shape_from_python(pybind11::handle shape);

}  // namespace shardwise
