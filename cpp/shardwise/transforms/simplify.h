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
// This computes nothing. Ops with a side effect or with regions, constraints and reshards are never merged, and ops
// whose results have different shardings count as different. Unused constraints stay, because propagation reads them.
#pragma once

#include "shardwise/ir/pass.h"

namespace shardwise {

Module simplify(Module module, PassContext& context);
inline constexpr Pass kSimplify{"simplify", "merge equal ops, fold moved splats, remove what is unused", simplify};

// The steps, each over all functions. They return the number of removed ops.
int64_t fold_splats(Module& module);
int64_t merge_equal_ops(Module& module);
enum class UnusedConstraints : uint8_t { kKeep, kRemove };
int64_t remove_unused_ops(Module& module, UnusedConstraints constraints = UnusedConstraints::kKeep);

// Whether the op, or an op in its regions, has a side effect. A constraint that must be kept counts as one.
bool has_effect(const Module& module, OpId id, UnusedConstraints constraints);

}  // namespace shardwise
