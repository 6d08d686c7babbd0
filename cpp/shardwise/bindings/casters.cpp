// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/casters.h"

#include <string>
#include <unordered_map>

#include "shardwise/base/error.h"
#include "shardwise/bindings/gil.h"

namespace py = pybind11;

namespace shardwise {

DType dtype_from_python(std::string_view name) {
  const auto dtype = dtype_from_numpy(name);
  if (!dtype) fail<DTypeError>("dtype", "must be one that programs can hold", name, "convert the array with astype");
  return *dtype;
}

py::object numpy_dtype_object(DType dtype) {
  const std::string name(numpy_name(dtype));
  // NumPy's own dtypes are the first ones of DType, up to kF64, and the complex ones; ml_dtypes has all others.
  const bool is_numpys = dtype != DType::kBF16 && (is_complex(dtype) || dtype <= DType::kF64);
  if (is_numpys) return py::dtype(name);
  return py::module_::import("numpy").attr("dtype")(py::module_::import("ml_dtypes").attr(name.c_str()));
}

namespace {

// NumPy works a dtype's name out in Python, which takes longer than to record an op. Each known descriptor is kept
// alive, so that its address stays its own.
DType dtype_of(const py::dtype& dtype) {
  // A bound, because a program may make new descriptors without end (dtypes with metadata).
  constexpr size_t kMostDescriptors = 64;
  static auto* known = new std::unordered_map<PyObject*, DType>;
  const auto found = known->find(dtype.ptr());
  if (found != known->end()) return found->second;
  if (!dtype.attr("isnative").cast<bool>()) {
    fail<DTypeError>("array", "must be in the machine's byte order", py::str(dtype.attr("str")).cast<std::string>(),
                     "convert it with astype");
  }
  const DType result = dtype_from_python(dtype.attr("name").cast<std::string>());
  if (known->size() < kMostDescriptors) {
    dtype.inc_ref();
    known->emplace(dtype.ptr(), result);
  }
  return result;
}

}  // namespace

NdArray from_numpy(const py::array& array) {
  const DType dtype = dtype_of(array.dtype());
  Dims shape(array.shape(), array.shape() + array.ndim());
  Dims strides(array.strides(), array.strides() + array.ndim());
  // The last owner may be a worker thread, or a run that released the GIL.
  std::shared_ptr<void> owner(new py::array(array), [](void* pointer) {
    const WithGil held;
    delete static_cast<py::array*>(pointer);
  });
  auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(array.data()));
  return NdArray(dtype, std::move(shape), std::move(strides), data, std::move(owner));
}

NdArray owned_copy(const NdArray& array) {
  NdArray copy = NdArray::empty(array.dtype(), array.shape());
  copy.copy_from(array);
  return copy;
}

py::array to_numpy(const NdArray& array) {
  // The capsule keeps the buffer alive as long as NumPy has a view of it.
  auto* owner = new std::shared_ptr<void>(array.owner());
  py::capsule base(owner, [](void* pointer) { delete static_cast<std::shared_ptr<void>*>(pointer); });
  py::array result(py::reinterpret_borrow<py::dtype>(numpy_dtype_object(array.dtype())), array.shape(), array.strides(),
                   array.data(), base);
  // Read-only: the buffer may be shared by several shards, results and arguments.
  py::detail::array_proxy(result.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return result;
}

ShapeTuple shape_tuple(DimSpan shape) {
  return tuple_of<ShapeTuple>(shape, [](int64_t size) { return size; });
}

int64_t integer_from_python(std::string_view what, py::handle value) {
  try {
    return value.cast<int64_t>();
  } catch (const py::cast_error&) {
    const bool is_integer = py::isinstance<py::int_>(value);
    fail<ShapeError>(what, is_integer ? "a number must fit into 64 bits" : "a number must be an integer",
                     py::repr(value).cast<std::string>());
  }
}

Dims shape_from_python(py::handle shape) {
  Dims dims;
  for (py::handle size : shape) dims.push_back(integer_from_python("shape", size));
  for (int64_t size : dims) {
    if (size < 0) fail<ShapeError>("shape", "sizes must not be negative", std::to_string(size));
  }
  return dims;
}

}  // namespace shardwise
