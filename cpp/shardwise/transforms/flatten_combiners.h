// SPDX-License-Identifier: Apache-2.0
//
// Makes the regions of reduce, scatter, sort and map elementwise, so that tile programs can run them:
//
//   %m = case %k {return %a} {return %b}     ->     %0 = compare EQ, %k, 0;  %m = select %0, %a, %b
//   %1 = reshape %m : tensor<f32>                   %m
//
// Both branches are computed, which costs less than a branch per element and changes no number: such ops have no
// effects. JAX writes these ops for jnp.where, lax.cond and the like in the function of lax.reduce or x.at[i].apply;
// calls are inlined before (inline_calls.h).
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void flatten_combiners(Module& module);

}  // namespace shardwise
