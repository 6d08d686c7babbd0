// SPDX-License-Identifier: Apache-2.0
//
// Fields that the OpDefs of several families of elementwise ops share:
//
//   composed_op("chlo.conj", …, kUnaryFormat, …, kElementwise)
//   elementwise_row("stablehlo.real", infer_part, tile_code<TileCode::kRealPart>, …)    // elementwise.h
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/op_def.h"
#include "shardwise/tile/program.h"

namespace shardwise {

inline constexpr std::string_view kSameFormat = "operands attr-dict `:` same-or-functional-type";

inline constexpr Traits kElementwise{.elementwise = true};

inline constexpr std::string_view kFunctionalFormat = "operands attr-dict `:` functional-type";
inline constexpr std::string_view kUnaryFormat = "operands attr-dict `:` same-type `->` result-type";

// Reasons of ops without a gradient.
inline constexpr std::string_view kTruth = "the result is a truth value";
inline constexpr std::string_view kBitwise = "an operation on bits has no derivative";

// The tile hook of an op that is one tile instruction.
template <TileCode Code>
uint32_t tile_code(TileBuilder& tiles, const OpView& op, std::span<const uint32_t> inputs) {
  return tiles.emit(Code, inputs, op.result_type().dtype);
}

}  // namespace shardwise
