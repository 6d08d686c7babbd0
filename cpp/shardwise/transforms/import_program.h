// SPDX-License-Identifier: Apache-2.0
//
// Copies a program that was read from text into a region of a module with the same context:
//
//   func.func @main(%x) { %0 = call @relu(%x) loc("f.py":3) }       ^bb0(%x): %0 = maximum %x, %zero loc("f.py":3)
//
// Calls of small functions, and of those that are called once, are inlined (inline_calls.h). The others become
// functions of the module: with the name of an equal one that is there, or with a new name. The names of ops go: JAX
// prints the path of its own scopes there. Those of gradients stay (gradient/name_gradients.h). A call of a function named "checkpoint_name:h", which returns its argument,
// names that value "h".
#pragma once

#include <functional>
#include <string_view>

#include "shardwise/ir/module.h"

namespace shardwise {

inline constexpr std::string_view kValueNamePrefix = "checkpoint_name:";

// Returns the region; its arguments and results are those of the program's main. Declares the program's meshes: a
// different mesh of the same name is a MeshError. Ops without a line are located at `call`. `name_gradients` may read the
// scopes that JAX has printed.
RegionId import_program(Module program, Module& into, LocId call = {},
                        const std::function<void(Module&)>& name_gradients = {});

}  // namespace shardwise
