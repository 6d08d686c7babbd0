// SPDX-License-Identifier: Apache-2.0
//
// Explanations as Python's dicts, of a unit with the snapshots `global` and `propagated`.
#pragma once

#include <memory>
#include <string>

#include <pybind11/pybind11.h>

#include "shardwise/compiler/driver.h"

namespace shardwise {

// Adds the questions that `why` asks to the class of units.
void bind_explanations(pybind11::module_& module, pybind11::class_<CompileUnit, std::shared_ptr<CompileUnit>>& units);

}  // namespace shardwise
