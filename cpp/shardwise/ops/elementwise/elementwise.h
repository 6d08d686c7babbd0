// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops as rows of one table: StableHLO's and CHLO's unary and binary ops, compare, select, clamp, convert.
// Each has one pass-through factor per dim, runs in the tile evaluator, and can be fused with its neighbours by its
// `tile` hook:
//
//   TileBuilder tiles;
//   uint32_t x = tiles.input(DType::kF32);
//   uint32_t y = op.def().tile(tiles, op, std::array{x});      // op: stablehlo.tanh
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/tile/program.h"

namespace shardwise {

std::span<const OpDef> elementwise_ops();

// Runs the op's `tile` hook as a program of its own; a select predicate or clamp bound that is a scalar is broadcast.
void kernel_elementwise(KernelContext& context);

void kernel_bitcast_convert(KernelContext& context);

}  // namespace shardwise
