// SPDX-License-Identifier: Apache-2.0
//
// Names the gradients that JAX has derived inside a step, as those that Shardwise derives are named, for reports:
//
//   %1 = dot_general %x, %ct          loc("jit(step)/transpose(jvp())/dot_general")  ->  loc("gradient of p['w']")
//   %2 = subtract %w, %1              argument p['w']: a weight, which this updates
//
// An update reads them (update_graph.h), and JAX's name of the op says that it transposes a derivative: a residual block
// looks like an update, too.
#pragma once

#include <span>
#include <string>

#include "shardwise/ir/module.h"

namespace shardwise {

// `arguments`: their names, "" of one without a name; none where they are not known.
void name_jax_gradients(Module& module, std::span<const std::string> arguments);

}  // namespace shardwise
