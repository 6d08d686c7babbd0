// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes programs as JSON:
//
//   {"format": "shardwise", "version": 1, "stablehlo": "module @jit_f {\n …"}
//
// The text is that of printer.h, with locations. A newer version, another format and malformed JSON are ParseErrors. An
// error in the program has the line and column of the program text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

std::string module_to_json(const Module& module);
Module module_from_json(std::string_view json, std::shared_ptr<Context> context);

}  // namespace shardwise
