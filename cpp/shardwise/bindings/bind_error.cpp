// SPDX-License-Identifier: Apache-2.0
//
// The one place where C++ errors become Python exceptions of the same name, and warnings Python's.
#include <algorithm>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/ir/place.h"

namespace py = pybind11;

namespace shardwise {
namespace {

struct ExceptionClass {
  PyObject* type;
  bool (*is_of)(const Error* error);
  bool is_located;  // the user's line is added where the error does not know one yet
};

// Error first, then those derived from it. Lives as long as the interpreter: exceptions may be raised until the end.
std::vector<ExceptionClass>& classes() {
  static auto* all = new std::vector<ExceptionClass>;
  return *all;
}

PyObject* g_warning = nullptr;  // the class ShardingWarning

PyObject* make_type(py::module_& module, const char* name, const char* doc, PyObject* builtin,
                    PyObject* base = nullptr) {
  const std::string qualified = std::string("shardwise.") + name;
  py::list bases;
  // Two bases, such as (Error, ValueError): `except ValueError` catches what a NumPy user expects.
  if (base != nullptr) bases.append(py::handle(base));
  bases.append(py::handle(builtin));
  PyObject* type = PyErr_NewExceptionWithDoc(qualified.c_str(), doc, py::tuple(bases).ptr(), nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.attr(name) = py::handle(type);
  return type;
}

template <class E>
void add_class(py::module_& module, const char* name, const char* doc, PyObject* builtin, bool is_located = true) {
  PyObject* base = classes().empty() ? nullptr : classes().front().type;
  classes().push_back({make_type(module, name, doc, builtin, base),
                       [](const Error* error) { return dynamic_cast<const E*>(error) != nullptr; }, is_located});
}

void locate(Error& error) {
  const ResolvedSource source = current_source();
  error.at(place_text(source.file, source.line));
}

// A message that quotes part of a text may have cut a character in two.
py::object text_of(const Error& error) {
  const std::string_view text = error.what();
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

void set_exception(Error&& error) {
  // The last class that fits, because all errors are of the first.
  const auto found = std::find_if(classes().rbegin(), classes().rend(),
                                  [&](const ExceptionClass& known) { return known.is_of(&error); });
  if (found->is_located) locate(error);
  const py::object exception = py::handle(found->type)(text_of(error));
  if (const auto* parse_error = dynamic_cast<const ParseError*>(&error)) {
    exception.attr("line") = parse_error->line();
    exception.attr("column") = parse_error->column();
  }
  PyErr_SetObject(found->type, exception.ptr());
}

void translate(std::exception_ptr pointer) {
  if (!pointer) return;
  try {
    std::rethrow_exception(pointer);
  } catch (Error& error) {
    set_exception(std::move(error));
  } catch (const std::bad_alloc&) {
    set_exception(OutOfMemoryError("shardwise", {}, 0));
  } catch (const std::length_error&) {  // of a container: no memory has that many elements
    set_exception(OutOfMemoryError("shardwise", {}, 0));
  } catch (const py::cast_error&) {
    Error error(error_message("shardwise", "an argument has a type that the function does not take", {},
                              "see the function's documentation"));
    locate(error);
    // pybind11 would raise RuntimeError, and name C++ types.
    PyErr_SetObject(PyExc_TypeError, text_of(error).ptr());
  }
}

}  // namespace

void bind_error(py::module_& module) {
  // An Error of no class of its own, and a bug in shardwise, have no line of the user's.
  add_class<Error>(module, "Error", "Base of all errors of shardwise.", PyExc_Exception, false);
  add_class<MeshError>(module, "MeshError", "An invalid or missing mesh.", PyExc_ValueError);
  add_class<ShardingError>(module, "ShardingError", "A sharding that does not fit its mesh or tensor.",
                           PyExc_ValueError);
  add_class<ShapeError>(module, "ShapeError", "Shapes or attributes that do not fit an op.", PyExc_ValueError);
  add_class<DTypeError>(module, "DTypeError", "A dtype that an op does not take.", PyExc_TypeError);
  add_class<ParseError>(module, "ParseError", "Malformed text; has .line and .column.", PyExc_ValueError);
  add_class<UnsupportedError>(module, "UnsupportedError",
                              "An operation that is not supported on traced or sharded arrays.", PyExc_TypeError);
  add_class<InternalError>(module, "InternalError", "A bug in shardwise.", PyExc_RuntimeError, false);
  add_class<OutOfMemoryError>(module, "OutOfMemoryError",
                              "A buffer that does not fit into memory, or a program that does not fit into its limit.",
                              PyExc_MemoryError);
  g_warning = make_type(module, "ShardingWarning", "Legal annotations that are probably not meant.", PyExc_UserWarning);
  py::register_exception_translator(translate);
}

void warn(const std::vector<std::string>& warnings) {
  // Most programs have none, and finding the user's line walks Python's frames.
  if (warnings.empty()) return;
  static auto* told = new py::dict();  // what Python's filters need to tell a line the same thing only once
  const ResolvedSource source = current_source();
  for (const std::string& text : warnings) {
    // The file and line are the user's, so that Python's filters show one warning per line of the user, not one in all.
    const int failed = source.file.empty() ? PyErr_WarnEx(g_warning, text.c_str(), 1)
                                           : PyErr_WarnExplicit(g_warning, text.c_str(), source.file.c_str(),
                                                                source.line, nullptr, told->ptr());
    if (failed != 0) throw py::error_already_set();
  }
}

}  // namespace shardwise
