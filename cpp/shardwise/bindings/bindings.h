// SPDX-License-Identifier: Apache-2.0
//
// One function per submodule of shardwise._core; module.cpp calls them and holds no logic.
#pragma once

#include <pybind11/pybind11.h>

namespace shardwise {

void bind_error(pybind11::module_& module);
void bind_mesh(pybind11::module_& module);
void bind_ir(pybind11::module_& module);
void bind_passes(pybind11::module_& module);
void bind_runtime(pybind11::module_& module);
void bind_processes(pybind11::module_& module);

}  // namespace shardwise
