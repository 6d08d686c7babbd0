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
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {

std::span<const OpDef> elementwise_ops();

void batch_elementwise(BatchContext& context);

// Runs the op's `tile` hook as a program of its own; a select predicate or clamp bound that is a scalar is broadcast.
std::optional<Kernel> prepare_elementwise(const OpView& op, const KernelTypes& types);

std::optional<Kernel> prepare_bitcast_convert(const OpView& op, const KernelTypes& types);

struct LinearIn {
  Linear kind = Linear::kNone;
  Reducer reducer = Reducer::kNone;
};

// An op with a `tile` hook that runs in the tile evaluator.
constexpr OpDef elementwise_row(std::string_view name, InferFn infer, TileFn tile, VjpFn vjp,
                                std::string_view no_vjp_reason, std::string_view format, std::string_view doc,
                                LinearIn linear = {}, bool commutative = false) {
  const ReducerSet reducers = linear.kind == Linear::kNone ? ReducerSet{0} : reducer_bit(linear.reducer);
  return OpDef{.name = name,
               .infer = infer,
               .rule = rule_like_first_result,
               .prepare = prepare_elementwise,
               .vjp = vjp,
               .batch = batch_elementwise,
               .tile = tile,
               .linear = {linear.kind, reducers},
               .no_vjp_reason = no_vjp_reason,
               .format = format,
               .doc = doc,
               .traits = {.elementwise = true, .commutative = commutative, .shares_memory = true}};
}

}  // namespace shardwise
