// SPDX-License-Identifier: Apache-2.0
//
// Infers the result types of the elementwise ops, and checks their operands:
//
//   DTypeError: stablehlo.tanh: operands must be floats, got tensor<4xi32>; convert it first
//   ShapeError: stablehlo.add: operands must have the same shape, got tensor<4xf32>, tensor<5xf32>;
//               broadcast one of them first
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/tile/program.h"

namespace shardwise {

// Operands of one type that the tile code accepts. The result has this type, too, or is i1.
void infer_same(const InferContext& op, TileCode code, std::vector<TypeId>& results);
template <TileCode Code>
void infer_code(const InferContext& op, std::vector<TypeId>& results) {
  infer_same(op, Code, results);
}

void infer_compare(const InferContext& op, std::vector<TypeId>& results);
void infer_select(const InferContext& op, std::vector<TypeId>& results);
void infer_clamp(const InferContext& op, std::vector<TypeId>& results);
void infer_convert(const InferContext& op, std::vector<TypeId>& results);
void infer_bitcast_convert(const InferContext& op, std::vector<TypeId>& results);
void infer_reduce_precision(const InferContext& op, std::vector<TypeId>& results);

TileCode comparison_code(std::string_view direction);  // "LT" -> kLess

}  // namespace shardwise
