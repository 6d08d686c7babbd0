// SPDX-License-Identifier: Apache-2.0
//
// Programs as text, run through passes:
//
//   Module module = program_of({{"x", 4}}, "%arg0: tensor<8xf32> {…}", "tensor<8xf32>", "%0 = …\n return %0 : …");
//   ops_of(assign(std::move(module), context))            // the lines of main's body, without the space in front
#pragma once

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

#include "shardwise/ir/pass.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"

namespace shardwise::testing {

inline Module program_of(std::string_view mesh, std::string_view arguments, std::string_view results,
                         std::string_view body) {
  register_ops();
  std::string text = "module @m {\n  sdy.mesh @mesh = <[" + std::string(mesh) + "]>\n  func.func public @main(" +
                     std::string(arguments) + ") -> (" + std::string(results) + ") {\n" + std::string(body) +
                     "\n  }\n}\n";
  return parse(text, std::make_shared<Context>());
}

inline std::string ops_of(const Module& module) {
  std::istringstream lines(print(module));
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ") && !line.starts_with("    return")) result += line.substr(4) + "\n";
  }
  return result;
}

}  // namespace shardwise::testing
