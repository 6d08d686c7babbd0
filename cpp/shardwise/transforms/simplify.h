// SPDX-License-Identifier: Apache-2.0
//
// The same program, shorter, in linear time:
//
//   %c = constant dense<0.0> : tensor<f32>              %b = constant dense<0.0> : tensor<8xf32>    a moved splat is
//   %b = broadcast_in_dim %c : tensor<8xf32>     ->     %1 = add %x, %b                             a splat
//   %1 = add %x, %b                                     %3 = multiply %1, %1                        %2 is %1
//   %2 = add %x, %b                                                                                 what nobody uses
//   %3 = multiply %1, %2                                                                            goes
//
// Nothing is computed here. Ops with a side effect, with regions, constraints and reshards are never merged, and ops
// whose results have different shardings are different ops. Constraints stay even when unused: propagation reads them.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module simplify(Module module, PassContext& context);
inline constexpr Pass kSimplify{"simplify", "merge equal ops, fold moved splats, remove what is unused", simplify};

// Its steps, each over all functions; they return the number of ops that went.
int64_t fold_splats(Module& module);
int64_t merge_equal_ops(Module& module);
enum class UnusedConstraints : uint8_t { kKeep, kRemove };
int64_t remove_unused_ops(Module& module, UnusedConstraints constraints = UnusedConstraints::kKeep);

// The op's own side effect, or one of the ops in its regions; a constraint that is kept counts as one.
bool has_effect(const Module& module, OpId id, UnusedConstraints constraints);

}  // namespace shardwise
