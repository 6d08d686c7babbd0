// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/attributes.h"

#include <cstring>
#include <optional>

#include <pybind11/stl.h>

#include "shardwise/base/error.h"
#include "shardwise/bindings/casters.h"

namespace py = pybind11;

namespace shardwise {
namespace {

Attribute attribute_from_python(py::handle value);
py::object attribute_to_python(const Attribute& attribute);

// ---- from Python ---------------------------------------------------------------------------------------------------

Attribute int_array(py::handle values) {
  IntArray array;
  for (py::handle value : values) array.push_back(integer_from_python("attribute", value));
  return array;
}

template <class T, class IsOne>
std::optional<Attribute> array_of(py::handle values, IsOne is_one) {
  AttrArray array;
  for (py::handle value : values) {
    if (!is_one(value)) return std::nullopt;
    array.push_back(value.cast<T>());
  }
  // An empty list is one of ints: most lists are dims.
  return array.empty() ? std::nullopt : std::optional<Attribute>(std::move(array));
}

Attribute array_from_python(py::handle values) {
  if (auto words = array_of<std::string>(values, py::isinstance<py::str>)) return *words;
  if (auto structs = array_of<StructAttr>(values, py::isinstance<StructAttr>)) return *structs;
  if (auto enums = array_of<EnumAttr>(values, py::isinstance<EnumAttr>)) return *enums;
  return int_array(values);
}

// The options of a call keep all digits.
Attribute options_dict(py::handle options) {
  AttrDict dict;
  for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(options)) {
    const bool is_float = py::isinstance<py::float_>(value);
    dict.fields.emplace_back(name.cast<std::string>(), is_float
                                                           ? Attribute(FloatAttr{value.cast<double>(), DType::kF64})
                                                           : attribute_from_python(value));
  }
  return dict;
}

Attribute attribute_from_python(py::handle value) {
  // Before int: True is an int in Python.
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return IntAttr{integer_from_python("attribute", value)};
  if (py::isinstance<py::float_>(value)) return FloatAttr{value.cast<double>()};
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) return array_from_python(value);
  if (py::isinstance<py::dict>(value)) return options_dict(value);
  if (py::isinstance<EnumAttr>(value)) return value.cast<EnumAttr>();
  if (py::isinstance<StructAttr>(value)) return value.cast<StructAttr>();
  if (py::isinstance<Symbol>(value)) return value.cast<Symbol>();
  if (py::isinstance<AxesAttr>(value)) return value.cast<AxesAttr>();
  if (py::isinstance<TensorSharding>(value)) return value.cast<TensorSharding>();
  if (py::isinstance<py::array>(value)) return DenseAttr{constant_from_python(value)};
  // A NumPy scalar keeps its width: np.int32(1) is 1 : i32, where 1 alone is 1 : i64.
  if (py::isinstance(value, py::module_::import("numpy").attr("integer"))) {
    return IntAttr{value.attr("item")().cast<int64_t>(), 8 * value.attr("itemsize").cast<int>()};
  }
  fail<DTypeError>("attribute",
                   "must be a bool, int, float, str, list of ints or of strs, dict, enum, struct, sharding or array",
                   py::repr(value).cast<std::string>());
}

// ---- to Python -----------------------------------------------------------------------------------------------------

// The value of each kind. Kinds that Python code only passes on or prints keep the extension's class.
struct ToPython {
  py::object operator()(Unit) const { return py::none(); }
  py::object operator()(const IntAttr& value) const { return py::int_(value.value); }
  py::object operator()(const FloatAttr& value) const { return py::float_(value.value); }
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
  template <class T>  // bool, std::string, EnumAttr, StructAttr, Symbol, AxesAttr, TensorSharding, RuleAttr
  py::object operator()(const T& value) const {
    return py::cast(value);
  }
};

py::object attribute_to_python(const Attribute& attribute) { return std::visit(ToPython(), attribute.base()); }

}  // namespace

// A copy: an attribute is interned by its contents, so it must not change when the user writes the array.
NdArray constant_from_python(py::handle array) {
  const NdArray view = from_numpy(py::reinterpret_borrow<py::array>(array));
  if (view.size() > 0 && view.is_splat()) {  // by its bytes, because a NaN may have a payload
    const NdArray one = NdArray::empty(view.dtype(), {1});
    std::memcpy(one.data(), view.data(), static_cast<size_t>(item_size(view.dtype())));
    return {view.dtype(), view.shape(), Dims(view.shape().size(), 0), one.data(), one.owner()};
  }
  return owned_copy(view);
}

Attrs attrs_from_python(py::handle dict_or_none) {
  Attrs attrs;
  if (dict_or_none.is_none()) return attrs;
  for (const auto& [name, value] : py::reinterpret_borrow<py::dict>(dict_or_none)) {
    attrs.set(name.cast<std::string>(), attribute_from_python(value));
  }
  return attrs;
}

AttributeDict attributes_to_python(const std::vector<NamedAttribute>& entries) {
  AttributeDict dict;
  for (const auto& [name, value] : entries) dict[py::str(name)] = attribute_to_python(value);
  return dict;
}

}  // namespace shardwise
