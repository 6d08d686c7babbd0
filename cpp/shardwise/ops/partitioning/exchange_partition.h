// SPDX-License-Identifier: Apache-2.0
//
// The exchange as a method of ops that read a dim at another place (OpDef::methods). Operands are taken where they are,
// and the result is made where it is needed:
//
//   x[1:]  64 rows on x=8        to {x, rows 8, size 63}, from {x, size 64}, offset 1
//
//   .methods = kByExchange       slice, pad, concatenate, reverse: the exchange is the whole op
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/mesh/exchange.h"

namespace shardwise {

// The tiles of a layout, all of it.
ExchangeTarget target_of(const DimLayout& layout);
ExchangeSource source_of(const DimLayout& layout);
// Reads from the range of the rule which elements of operand `operand` a tile of dim `dim` of result 0 needs.
ExchangeTarget exchange_target(const PartitionContext& context, size_t dim);
ExchangeSource exchange_source(const PartitionContext& context, size_t operand, size_t dim);
// Creates the exchange and names the method as its cause, along the first dim that moves; nothing where nothing is
// sharded. `fill` is a scalar, or none.
ValueId emit_exchange(PartitionContext& context, std::span<const ValueId> operands, ValueId fill,
                      const ExchangeMap& map);

// The factors that the rule reads at another place.
std::vector<FactorId> moved_factors(const OpView& op, const ShardingRule& rule);
void partition_by_exchange(PartitionContext& context);

inline constexpr std::string_view kExchange = "exchange";
inline constexpr Method kByExchange[] = {{kExchange, moved_factors, nullptr, partition_by_exchange, true}};

}  // namespace shardwise
