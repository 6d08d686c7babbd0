// SPDX-License-Identifier: Apache-2.0
//
// Makes one function of a module the program to compile:
//
//   func.func public @main … { … }
//   func.func public @loss … { … call @norm … }      entry_function(module, "loss")     @loss, which is main() now,
//   func.func private @norm … { … }                                                     and @norm
//
// Functions that it does not reach go, and the others are private. If it calls @main, that function gets another name.
#pragma once

#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

// UnsupportedError for a function that is not in the module.
Module entry_function(Module module, std::string_view name);

}  // namespace shardwise
