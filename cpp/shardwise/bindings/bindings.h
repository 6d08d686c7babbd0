// SPDX-License-Identifier: Apache-2.0
//
// One function per submodule of shardwise._core; module.cpp calls them and holds no logic.
#pragma once

#include <string>
#include <vector>

#include <pybind11/pybind11.h>

namespace shardwise {

void bind_analysis(pybind11::module_& module);
void bind_error(pybind11::module_& module);
void bind_mesh(pybind11::module_& module);
void bind_hardware(pybind11::module_& module);
void bind_ir(pybind11::module_& module);
void bind_passes(pybind11::module_& module);
void bind_runtime(pybind11::module_& module);
void bind_solve(pybind11::module_& module);
void bind_processes(pybind11::module_& module);

// Parts of `ir`, which bind_ir calls: the recorder of programs, and custom calls that Python defines.
void bind_trace(pybind11::module_& module);
void bind_custom_calls(pybind11::module_& module);

// Warnings of passes become Python warnings, of the class ShardingWarning, at the user's line:
//
//   warn(program.warnings);     // train.py:31: ShardingWarning: sharding_group 5: members should be annotated alike, …
//
// Throws what a filter of the user's makes of a warning. Needs the GIL.
void warn(const std::vector<std::string>& warnings);

}  // namespace shardwise
