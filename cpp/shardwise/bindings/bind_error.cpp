// SPDX-License-Identifier: Apache-2.0
//
// The one place where C++ errors become Python exceptions of the same name, and warnings Python's.
#include <new>
#include <stdexcept>
#include <string_view>

#include "shardwise/base/error.h"
#include "shardwise/bindings/bindings.h"
#include "shardwise/bindings/source_frame.h"
#include "shardwise/bindings/warnings.h"
#include "shardwise/ir/place.h"

namespace py = pybind11;

namespace shardwise {
namespace {

struct ExceptionTypes {
  PyObject* error;
  PyObject* mesh;
  PyObject* sharding;
  PyObject* shape;
  PyObject* dtype;
  PyObject* parse;
  PyObject* unsupported;
  PyObject* internal;
  PyObject* memory;
  PyObject* warning;
};

// Lives as long as the interpreter: exceptions may be raised until the end.
ExceptionTypes& types() {
  static auto* all = new ExceptionTypes{};
  return *all;
}

PyObject* make_type(py::module_& module, const char* name, const char* doc, PyObject* builtin,
                    PyObject* base = types().error) {
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

// The user's line, where the error does not know one yet.
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

void set_error(PyObject* type, const Error& error) { PyErr_SetObject(type, text_of(error).ptr()); }

void set_parse_error(const ParseError& error) {
  py::object exception = py::handle(types().parse)(text_of(error));
  exception.attr("line") = error.line();
  exception.attr("column") = error.column();
  PyErr_SetObject(types().parse, exception.ptr());
}

void translate(std::exception_ptr pointer) {
  if (!pointer) return;
  // Derived classes are caught before Error, which is the base of all. An InternalError
  // gets no user's line: it is our bug.
  try {
    std::rethrow_exception(pointer);
  } catch (ParseError& error) {
    locate(error);
    set_parse_error(error);
  } catch (MeshError& error) {
    locate(error);
    set_error(types().mesh, error);
  } catch (ShardingError& error) {
    locate(error);
    set_error(types().sharding, error);
  } catch (ShapeError& error) {
    locate(error);
    set_error(types().shape, error);
  } catch (DTypeError& error) {
    locate(error);
    set_error(types().dtype, error);
  } catch (UnsupportedError& error) {
    locate(error);
    set_error(types().unsupported, error);
  } catch (InternalError& error) {
    set_error(types().internal, error);
  } catch (OutOfMemoryError& error) {
    locate(error);
    set_error(types().memory, error);
  } catch (Error& error) {
    set_error(types().error, error);
  } catch (const std::bad_alloc&) {
    OutOfMemoryError error("shardwise", {}, 0);
    locate(error);
    set_error(types().memory, error);
  } catch (const std::length_error&) {  // of a container: no memory has that many elements
    OutOfMemoryError error("shardwise", {}, 0);
    locate(error);
    set_error(types().memory, error);
  } catch (const py::cast_error&) {
    Error error(error_message("shardwise", "an argument has a type that the function does not take", {},
                              "see the function's documentation"));
    locate(error);
    // pybind11 would raise RuntimeError, and name C++ types.
    PyErr_SetObject(PyExc_TypeError, text_of(error).ptr());
  }
}

// Python 3.10 re-raises with a traceback of the handler's, not with the exception's.
void set_handled_traceback(const py::object& traceback) {
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* old = nullptr;
  PyErr_GetExcInfo(&type, &value, &old);
  Py_XDECREF(old);
  PyErr_SetExcInfo(type, value, traceback.is_none() ? nullptr : py::object(traceback).release().ptr());
}

}  // namespace

void bind_error(py::module_& module) {
  ExceptionTypes& all = types();
  all.error = make_type(module, "Error", "Base of all errors of shardwise.", PyExc_Exception);
  all.mesh = make_type(module, "MeshError", "A mesh that cannot be, or that is missing.", PyExc_ValueError);
  all.sharding =
      make_type(module, "ShardingError", "A sharding that does not fit its mesh or tensor.", PyExc_ValueError);
  all.shape = make_type(module, "ShapeError", "Shapes or attributes that do not fit an op.", PyExc_ValueError);
  all.dtype = make_type(module, "DTypeError", "A dtype that an op does not take.", PyExc_TypeError);
  all.parse = make_type(module, "ParseError", "Malformed text; has .line and .column.", PyExc_ValueError);
  all.unsupported =
      make_type(module, "UnsupportedError", "What has no meaning on a traced or sharded array here.", PyExc_TypeError);
  all.internal = make_type(module, "InternalError", "A bug in shardwise.", PyExc_RuntimeError);
  all.memory = make_type(module, "OutOfMemoryError", "A buffer that does not fit into memory.", PyExc_MemoryError);
  all.warning = make_type(module, "ShardingWarning", "Legal annotations that are probably not meant.",
                          PyExc_UserWarning, nullptr);
  py::register_exception_translator(translate);
  module.def("set_handled_traceback", &set_handled_traceback, py::arg("traceback"));
}

void warn(const std::vector<std::string>& warnings) {
  static auto* told = new py::dict();  // what Python's filters need to tell a line the same thing only once
  const ResolvedSource source = current_source();
  for (const std::string& text : warnings) {
    // The file and line are the user's, so that Python's filters show one warning per line of the user, not one in all.
    const int failed = source.file.empty() ? PyErr_WarnEx(types().warning, text.c_str(), 1)
                                           : PyErr_WarnExplicit(types().warning, text.c_str(), source.file.c_str(),
                                                                source.line, nullptr, told->ptr());
    if (failed != 0) throw py::error_already_set();
  }
}

}  // namespace shardwise
