// SPDX-License-Identifier: Apache-2.0
//
// The message of the error that some code throws:
//
//   message_of<ShapeError>([&] { run(arguments); })    // "run: …", or "no error"
#pragma once

#include <string>

namespace shardwise::testing {

template <class E, class F>
std::string message_of(F&& run) {
  try {
    run();
  } catch (const E& error) {
    return error.message();
  }
  return "no error";
}

}  // namespace shardwise::testing
