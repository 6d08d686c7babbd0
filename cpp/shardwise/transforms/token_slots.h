// SPDX-License-Identifier: Apache-2.0
//
// Tokens as empty arrays, so that carries of loops, arguments of functions and barriers hold them like any value:
//
//   %t = stablehlo.create_token : !stablehlo.token          %t = stablehlo.constant dense<> : tensor<0xi1>
//   %r:2 = while(%i = %n, %u = %t) …                        the same loop, with a carry tensor<0xi1>
//
// An op that needs a token for its effect (outfeed) is refused. So is a token that main receives or returns: JAX passes
// one for ordered callbacks.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void empty_tokens(Module& module);

}  // namespace shardwise
