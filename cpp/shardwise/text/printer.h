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
// Values are numbered within a function: %0, %1, … and %arg0, …. Their names are in the locations. Local block sizes
// that differ from the default are the attribute `shardwise.local_blocks` of an op or argument. When only some results
// of an op have shardings, the others print as open shardings, which are equivalent.
#pragma once

#include <string>

#include "shardwise/ir/module.h"

namespace shardwise {

struct PrintOptions {
  bool locations = false;  // loc(...) behind every op and argument
  bool generic = false;    // all ops in MLIR's generic form
};

std::string print(const Module& module, PrintOptions options = {});

// loc("h"("f.py":3:4)); sources are resolved.
std::string location_attribute_text(const Context& context, LocId id);

}  // namespace shardwise
