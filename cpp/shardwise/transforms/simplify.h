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
// An op has one form, however the program spells it (OpDef::fold). XLA, too, makes such broadcasts reshapes before it
// propagates:
//
//   %1 = broadcast_in_dim %ids, dims = [0]            %1 = reshape %ids                        nothing is repeated
//        : (tensor<8xi32>) -> tensor<8x1xi32>    ->
//   %2 = transpose %w, dims = [1, 0]                  %3 = dot_general %x, %w,                 a product reads
//   %3 = dot_general %x, %2,                               contracting_dims = [1] x [1]        dims in any order
//        contracting_dims = [1] x [0]
//
// The new op has the location and the origin of the old one, and its result the sharding and the origin of the old
// result.
//
// Equal calls become one. If it is the only call of its function, the ops of the function replace it (inline_calls.h).
//
// Ops without a sharding rule that others make up are replaced by these, which propagation understands: dynamic_* ops
// by static ones, for example. Nothing is computed here.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module simplify(Module module, PassContext& context);
inline constexpr Pass kSimplify{
    .name = "simplify",
    .doc = "make dynamic ops static, write each movement in one form, merge equal ops, remove what is unused",
    .run = simplify};

// Its own step, over all functions (the others are in ir/rewrite); returns the number of ops folded.
int64_t fold_splats(Module& module);

}  // namespace shardwise
