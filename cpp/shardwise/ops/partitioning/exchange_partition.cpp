// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/exchange_partition.h"

#include <algorithm>
#include <optional>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/partitioning/padding.h"

namespace shardwise {

ExchangeTarget target_of(const DimLayout& layout) {
  return {.axes = layout.axes, .rows = layout.block, .step = layout.block, .size = layout.size};
}

ExchangeSource source_of(const DimLayout& layout) {
  return {.axes = layout.axes, .block = layout.block, .size = layout.size};
}

ExchangeTarget exchange_target(const PartitionContext& context, size_t dim) {
  return target_of(context.result_layout(0).dim(dim));
}

ExchangeSource exchange_source(const PartitionContext& context, size_t operand, size_t dim) {
  const DimLayout layout = context.operand_layout(operand).dim(dim);
  ExchangeSource source = source_of(layout);
  const Range* range = context.rule().range(operand, dim);
  if (range == nullptr) return source;
  source.scale = range->scale;
  source.offset = range->offset;
  source.holes = range->holes;
  if (range->outside == Outside::kAbsent) {
    // The second operand of a concatenate with offset -4 has rows [4, 4 + size) of
    // the result, other operands the others.
    source.begin = -range->offset;
    source.end = source.begin + layout.size;
  }
  return source;
}

namespace {

// The first dim that is sharded and read at another place; if there is none, the first one that is sharded.
size_t moving_dim(const PartitionContext& context, const ExchangeMap& map) {
  std::optional<size_t> sharded;
  for (size_t d = 0; d < map.to.size(); ++d) {
    const auto has_axes = [&](const auto& operand) { return !operand[d].axes.empty(); };
    if (map.to[d].axes.empty() && std::ranges::none_of(map.from, has_axes)) continue;
    if (context.rule().range(0, d) != nullptr) return d;
    if (!sharded) sharded = d;
  }
  return sharded.value_or(0);
}

}  // namespace

ValueId emit_exchange(PartitionContext& context, std::span<const ValueId> operands, ValueId fill,
                      const ExchangeMap& map) {
  const ValueId made = create_exchange(context.builder(), context.mesh(), operands, fill, map);
  return context.explain(made, static_cast<int64_t>(moving_dim(context, map)));
}

// A start that the program computes is no part of an exchange, whose map is static.
std::vector<FactorId> moved_factors(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  for (size_t d = 0; d < rule.ndim(0); ++d) {
    if (const Range* range = rule.range(0, d); range != nullptr && range->is_static()) {
      factors.push_back(rule.dim(0, d)[0]);
    }
  }
  // Only values on a mesh can move.
  return op.module().meshes.empty() ? std::vector<FactorId>{} : factors;
}

void partition_by_exchange(PartitionContext& context) {
  const OpView op = context.op();
  const size_t ndim = op.result_type().shape.size();
  ExchangeMap map;
  for (size_t d = 0; d < ndim; ++d) map.to.push_back(exchange_target(context, d));
  std::vector<ValueId> operands;
  ValueId fill;
  bool has_scalar = false;
  for (size_t d = 0; d < ndim; ++d) {
    const Range* range = context.rule().range(0, d);
    // Operand 1 of a pad is its padding value, no tensor that moves. Operand 1 of a concatenate is one.
    has_scalar = has_scalar || (range != nullptr && range->outside == Outside::kScalar);
  }
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (has_scalar && i == 1) {
      fill = context.operand(i);
      continue;
    }
    operands.push_back(context.operand(i));
    std::vector<ExchangeSource>& from = map.from.emplace_back();
    for (size_t d = 0; d < ndim; ++d) from.push_back(exchange_source(context, i, d));
  }
  context.set_result(0, emit_exchange(context, operands, fill, map), result_padding(context.result_layout(0)));
}

}  // namespace shardwise
