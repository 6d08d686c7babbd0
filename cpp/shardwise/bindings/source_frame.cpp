// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/source_frame.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "shardwise/bindings/gil.h"

namespace py = pybind11;

namespace shardwise {
namespace {

std::vector<std::string>& hidden_folders() {
  static auto* folders = new std::vector<std::string>;
  return *folders;
}

// Code objects known to be hidden; each is kept alive so that its address stays its own.
bool is_hidden(PyCodeObject* code) {
  static auto* hidden = new std::unordered_set<PyCodeObject*>;
  if (hidden->contains(code)) return true;
  Py_ssize_t length = 0;
  const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &length);
  // A file name that is no UTF-8; its frames count as the user's.
  if (file == nullptr) {
    PyErr_Clear();
    return false;
  }
  const std::string_view path(file, static_cast<size_t>(length));
  const bool matches = std::any_of(hidden_folders().begin(), hidden_folders().end(),
                                   [&](const std::string& folder) { return path.starts_with(folder); });
  if (matches) {
    Py_INCREF(reinterpret_cast<PyObject*>(code));
    hidden->insert(code);
  }
  return matches;
}

struct UserFrame {
  py::object code;  // empty outside Python code
  int offset = 0;
};

UserFrame nearest_user_frame() {
  auto frame = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  // The innermost frame that is not of the package: the line that the user wrote.
  while (frame) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    auto code = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    if (!is_hidden(reinterpret_cast<PyCodeObject*>(code.ptr()))) return {std::move(code), PyFrame_GetLasti(raw)};
    frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(raw)));
  }
  return {};
}

ResolvedSource resolve_in_python(py::handle code, int offset) {
  const auto found = py::module_::import("shardwise.user_code.sources")
                         .attr("resolve")(code, offset)
                         .cast<std::tuple<std::string, int, int, std::string>>();
  const auto& [file, line, column, variable] = found;
  return {.file = file, .line = line, .column = column, .variable = variable};
}

class PythonFrame final : public SourceFrame {
 public:
  explicit PythonFrame(py::object code) : code_(std::move(code)) {}
  PythonFrame(const PythonFrame&) = delete;
  PythonFrame& operator=(const PythonFrame&) = delete;
  ~PythonFrame() override {
    // A context may outlive the thread that traced it, and even the interpreter.
    if (!Py_IsInitialized()) {
      // No reference can be dropped without an interpreter; the memory goes with the process.
      code_.release();
      return;
    }
    const WithGil held;
    code_ = py::object();
  }
  ResolvedSource resolve(int32_t offset) const override {
    const WithGil held;
    return resolve_in_python(code_, offset);
  }

 private:
  py::object code_;
};

}  // namespace

void hide_frames_of(std::vector<std::string> folders) { hidden_folders() = std::move(folders); }

LocId current_location(Context& context) {
  UserFrame frame = nearest_user_frame();
  if (!frame.code) return {};
  return context.source_location(frame.code.ptr(), frame.offset,
                                 // Made once per code object. It keeps the code alive, so that
                                 // the key, its address, stays its own.
                                 [&] { return std::make_unique<PythonFrame>(frame.code); });
}

ResolvedSource current_source() {
  UserFrame frame = nearest_user_frame();
  return frame.code ? resolve_in_python(frame.code, frame.offset) : ResolvedSource();
}

}  // namespace shardwise
