// SPDX-License-Identifier: Apache-2.0
//
// A program with another annotation on one of its values, to see what that would cost:
//
//   func @main(%w1 [{}, {"model"}]) …            annotated_instead(traced, "w1", [{}, {"data"}])
//                                                func @main(%w1 [{}, {"data"}]) …
//
// The annotations that the value has are replaced: of an argument, or by a constraint of this name. Another value gets a
// constraint, which all of its users read.
#pragma once

#include <string>

#include "shardwise/ir/module.h"

namespace shardwise {

// The ops of the program keep their ids. Throws ShardingError if no value, or several, have the name, or if the sharding has
// another rank.
Module annotated_instead(Module module, const std::string& name, const TensorSharding& sharding);

}  // namespace shardwise
