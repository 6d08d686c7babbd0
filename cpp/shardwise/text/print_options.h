// SPDX-License-Identifier: Apache-2.0
//
// How a module is printed.
#pragma once

namespace shardwise {

struct PrintOptions {
  bool locations = false;   // loc(...) after every op and argument
  bool generic = false;     // all ops in MLIR's generic form
  bool placements = false;  // of every value of a local program, not only of arguments and results
};

}  // namespace shardwise
