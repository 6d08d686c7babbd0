// SPDX-License-Identifier: Apache-2.0
//
// Prints modules as StableHLO text with sdy attributes. Every stage of a program has this one text form, and `parse`
// (parser.h) reads all of it back:
//
//   module @jit_f {
//     sdy.mesh @mesh = <["x"=4]>
//     func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
//       %0 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32> loc(…)
//       return %0 : tensor<8xf32>
//     }
//   }
//
// Values are numbered within a function: %0, %1, … and %arg0, …. Their names are in the locations. When only some
// results of an op have shardings, the others print as open shardings, which are equivalent.
//
// The part of a global value that a value holds (Module::part) is printed where it is not the default. In a local
// program, of arguments and results: its placement, the global type unless the blocks fill it, and the padding of a
// result if it is known. In a resharded one, of every value: blocks beside its sharding.
//
//   (%arg0: tensor<5xf32> {shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5]> : tensor<17xf32>}) -> …
//   %1 = stablehlo.tanh %0 {sdy.sharding = …, shardwise.local_blocks = array<i64: 6>} : tensor<17xf32>
#pragma once

#include <string>

#include "shardwise/ir/module.h"
#include "shardwise/text/print_options.h"

namespace shardwise {

std::string print(const Module& module, PrintOptions options = {});

// loc("h"("f.py":3:4)); sources are resolved.
std::string location_attribute_text(const Context& context, LocId id);

}  // namespace shardwise
