// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pybind11/pybind11.h>

namespace shardwise {

void bind_trace(pybind11::module_& module);

// Registers the definitions of custom calls by Python functions. Called by bind_ir.
void bind_custom_calls(pybind11::module_& module);  // called by bind_ir

}  // namespace shardwise
