// SPDX-License-Identifier: Apache-2.0
//
// Simplifies the program in linear time:
//
//   %c = constant dense<0.0> : tensor<f32>              %b = constant dense<0.0> : tensor<8xf32>    a moved splat is
//   %b = broadcast_in_dim %c : tensor<8xf32>     ->     %1 = add %x, %b                             a splat
//   %1 = add %x, %b                                     %3 = multiply %1, %1                        %2 is %1
//   %2 = add %x, %b                                                                                 what nobody uses
//   %3 = multiply %1, %2                                                                            goes
//
// Ops without a sharding rule that others make up are replaced by these, which propagation understands: dynamic_* ops
// by static ones, for example. Nothing is computed here.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module simplify(Module module, PassContext& context);
inline constexpr Pass kSimplify{
    .name = "simplify",
    .doc = "make dynamic ops static, merge equal ops, fold moved splats, remove what is unused",
    .run = simplify,
    .keeps = Snapshot::kGlobal};

// Its own step, over all functions (the others are in ir/rewrite); returns the number of ops folded.
int64_t fold_splats(Module& module);

}  // namespace shardwise
