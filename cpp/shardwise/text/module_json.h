// SPDX-License-Identifier: Apache-2.0
//
// Programs as JSON, both ways:
//
//   {"format": "shardwise", "version": 1, "stablehlo": "module @jit_f {\n …"}
//
// The text is that of printer.h, with locations. A newer version, another format and malformed JSON are ParseErrors;
// one in the program has its line and column there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

std::string module_to_json(const Module& module);
Module module_from_json(std::string_view json, std::shared_ptr<Context> context);

}  // namespace shardwise
