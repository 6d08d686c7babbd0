// SPDX-License-Identifier: Apache-2.0
//
// Explanations as JSON (explanation_json.h), of a unit with the snapshots `global` and `propagated`.
#pragma once

#include <memory>

#include <pybind11/pybind11.h>

#include "shardwise/compiler/driver.h"

namespace shardwise {

// Adds the questions that `why` asks to the class of units.
void bind_explanations(pybind11::class_<CompileUnit, std::shared_ptr<CompileUnit>>& units);

}  // namespace shardwise
