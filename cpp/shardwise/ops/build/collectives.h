// SPDX-License-Identifier: Apache-2.0
//
// Creates collectives of one device's program (collectives/local_collectives.h describes them).
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/mesh/exchange.h"

namespace shardwise {

ValueId create_axis_index(Builder& builder, const Mesh& mesh, AxisSpan axes);
ValueId create_all_reduce(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, Reducer reducer);
ValueId create_all_gather(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AxisList> gather);
ValueId create_all_gather(Builder& builder, const Mesh& mesh, ValueId operand, size_t dim, const AxisList& axes);
ValueId create_reduce_scatter(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes,
                              std::span<const AxisList> scatter, Reducer reducer);
ValueId create_all_to_all(Builder& builder, const Mesh& mesh, ValueId operand, std::span<const AllToAllMove> moves);
ValueId create_collective_permute(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan from, AxisSpan to);
// Around the ring of the devices along `axes`: each receives from the one `shift` places before it.
ValueId create_ring_shift(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift);
// Exclusive scan over devices: forward for shift 1, backward for -1. The first device receives zeros.
ValueId create_chain(Builder& builder, const Mesh& mesh, ValueId operand, AxisSpan axes, int64_t shift,
                     Reducer reducer);
// The sizes of blocks are those of the operands.
Attrs exchange_attrs(const Mesh& mesh, const ExchangeMap& map);
// `fill` is a scalar, or none.
ValueId create_exchange(Builder& builder, const Mesh& mesh, std::span<const ValueId> operands, ValueId fill,
                        const ExchangeMap& map);

}  // namespace shardwise
