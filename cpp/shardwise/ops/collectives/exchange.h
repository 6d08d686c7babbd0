// SPDX-License-Identifier: Apache-2.0
//
// shardwise.exchange: elements move to the devices that need them, in one step (mesh/exchange.h describes the map).
//
//   x[::-1] of 33 rows on x=8
//     %1 = "shardwise.exchange"(%0) <{from = [[{axes = {"x"}, offset = 32, scale = -1, size = 33}, {}]], mesh = @mesh,
//            to = [{axes = {"x"}, rows = 5, size = 33}, {rows = 16}]}> : (tensor<5x16xf32>) -> tensor<5x16xf32>
//
//   to      for each dim {axes, rows, step, size}. Left out: axes = none, step = rows, size = rows times the tiles
//   from    for each operand, and each of its dims, {axes, size, scale, offset, holes, begin, end}. Left out: axes =
//           none, size = the local size times the shards, scale = 1, offset = 0, holes = 1, begin = 0, end = the size
//           of the result
//
//   from_mesh  the mesh of the axes in `from`, if it is not `mesh`: a second one over the same devices
//
// On global values, before `localize`, it has no attributes: the shardings of operand and result tell what moves.
//
// One operand more than `from` has is a scalar, which fills what no operand has. Elements there are zeros otherwise.
#pragma once

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/exchange.h"

namespace shardwise {

void infer_exchange(const InferContext& op, std::vector<TypeId>& results);

ExchangeMap exchange_map(const OpView& op);
bool has_fill(const OpView& op);  // its last operand
// The mesh that an attribute of a collective names.
MeshPtr named_mesh(const Module& module, const Attrs& attrs, std::string_view name, std::string_view op);

}  // namespace shardwise
