// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/attributes_to_python.h"

#include <pybind11/stl.h>

#include "shardwise/bindings/casters.h"

namespace py = pybind11;

namespace shardwise {
namespace {

template <class Range, class Convert>
py::tuple tuple_of(const Range& range, Convert convert) {
  py::tuple items(range.size());
  for (size_t i = 0; i < range.size(); ++i) items[i] = convert(range[i]);
  return items;
}

// The value of each kind. Kinds that Python code only passes on or prints keep the extension's class.
struct ToPython {
  py::object operator()(Unit) const { return py::none(); }
  py::object operator()(bool value) const { return py::bool_(value); }
  py::object operator()(const IntAttr& value) const { return py::int_(value.value); }
  py::object operator()(const FloatAttr& value) const { return py::float_(value.value); }
  py::object operator()(const std::string& value) const { return py::str(value); }
  py::object operator()(const IntArray& values) const { return shape_tuple(values); }
  py::object operator()(const NarrowIntArray& array) const {
    return tuple_of(array.values, [&](int64_t value) -> py::object {
      // array<i1: true> is a list of flags.
      if (array.bits == 1) return py::bool_(value != 0);
      return py::int_(value);
    });
  }
  py::object operator()(const AttrArray& array) const { return tuple_of(array, &attribute_to_python); }
  py::object operator()(const DenseAttr& value) const { return to_numpy(value.data); }
  py::object operator()(const AttrDict& value) const { return attributes_to_python(value.fields); }
  py::object operator()(const TypeAttr& value) const { return py::cast(value.type); }
  py::object operator()(const AxesPerDimAttr& value) const {
    return tuple_of(value.dims, [](const std::vector<RawAxisRef>& axes) { return py::cast(AxesAttr{axes}); });
  }
  py::object operator()(const ShardingPerValue& value) const {
    return tuple_of(value, [](const TensorSharding& sharding) { return py::cast(sharding); });
  }
  template <class T>  // EnumAttr, StructAttr, Symbol, AxesAttr, TensorSharding, RuleAttr
  py::object operator()(const T& value) const {
    return py::cast(value);
  }
};

}  // namespace

py::object attribute_to_python(const Attribute& attribute) { return std::visit(ToPython(), attribute.base()); }

AttributeDict attributes_to_python(const std::vector<NamedAttribute>& entries) {
  AttributeDict dict;
  for (const auto& [name, value] : entries) dict[py::str(name)] = attribute_to_python(value);
  return dict;
}

}  // namespace shardwise
