// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops as rows of one table: StableHLO's and CHLO's unary and binary ops, compare, select, clamp, convert.
// Each has one pass-through factor per dim and runs in the tile evaluator. Its `tile` hook lets it fuse with its
// neighbors:
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
std::optional<Kernel> prepare_elementwise(const OpView& op, const KernelTypes& types);

std::optional<Kernel> prepare_bitcast_convert(const OpView& op, const KernelTypes& types);

// `direction` is EQ, NE, LT, LE, GT or GE. `type`, if given, is the type of the comparison: FLOAT, SIGNED, UNSIGNED.
ValueId build_compare(Builder& builder, std::string_view direction, ValueId lhs, ValueId rhs,
                      std::string_view type = {});
// 1 where the operands are equal, else 0, in their dtype.
ValueId build_equal_as_number(Builder& builder, ValueId lhs, ValueId rhs);

}  // namespace shardwise
