// SPDX-License-Identifier: Apache-2.0
//
// Ops without operands: constant and iota.
//
//   %0 = stablehlo.constant dense<1.5> : tensor<4x8xf32>        one element in memory, whatever the shape
//   %1 = stablehlo.iota dim = 1 : tensor<4x8xi32>               row of 0…7, four times
//
// Sharded {"x"} on dim 1 with x = 2, the local iota is iota over 4 columns + axis_index("x") * 4, and the local
// constant is the same splat with the local shape. A constant that is not a splat is created whole and then sliced.
#pragma once

#include <optional>
#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> create_ops();

void infer_constant(const InferContext& op, std::vector<TypeId>& results);
std::optional<Kernel> prepare_constant(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_iota(const OpView& op, const KernelTypes& types);

}  // namespace shardwise
