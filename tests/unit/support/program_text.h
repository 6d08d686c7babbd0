// SPDX-License-Identifier: Apache-2.0
//
// Programs as text for the tests of passes: parse, run, print.
#pragma once

#include <memory>
#include <string>

#include "shardwise/ir/pass.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"

namespace shardwise {

inline Module parse_program(const std::string& text) {
  register_ops();
  return parse(text, std::make_shared<Context>());
}

// The lines of the body of main, without indentation.
inline std::string body_text(const Module& module) {
  verify(module);
  const std::string text = print(module);
  std::string body;
  size_t begin = text.find("func.func");
  while ((begin = text.find('\n', begin)) != std::string::npos) {
    const size_t first = text.find_first_not_of(' ', ++begin);
    if (first == std::string::npos || (text[first] == '}' && first - begin <= 2)) break;  // not that of a region
    const size_t end = text.find('\n', first);
    body += text.substr(first, end - first + 1);
  }
  return body;
}

// The line of `func.func`, from its name on.
inline std::string signature_text(const Module& module) {
  const std::string text = print(module);
  const size_t begin = text.find('@', text.find("func.func"));
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace shardwise
