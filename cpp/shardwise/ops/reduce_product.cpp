// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce_product.h"

#include <vector>

#include "shardwise/ops/create.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/layout.h"
#include "shardwise/ops/reduce.h"
#include "shardwise/ops/slicing.h"

namespace shardwise {
namespace {

ValueId rows(Builder& builder, ValueId value, int64_t begin, int64_t end) {
  const Dims shape = builder.module().type(value).shape;
  Dims start(shape.size(), 0), limit = shape;
  start[0] = begin;
  limit[0] = end;
  return build_slice(builder, value, start, limit, Dims(shape.size(), 1));
}

ValueId multiply(Builder& builder, ValueId lhs, ValueId rhs) {
  return builder.create("stablehlo.multiply", {lhs, rhs});
}

// The levels of the tree, leaves first. The last level has one row.
std::vector<ValueId> product_tree(Builder& builder, ValueId leaves, int64_t count) {
  std::vector<ValueId> levels{leaves};
  for (; count > 1; count = ceil_div(count, 2)) {
    const int64_t half = count / 2;
    const ValueId level = levels.back();
    ValueId next = multiply(builder, rows(builder, level, 0, half), rows(builder, level, half, 2 * half));
    if (count % 2 != 0) next = build_concatenate(builder, {next, rows(builder, level, count - 1, count)}, 0);
    levels.push_back(next);
  }
  return levels;
}

ValueId backwards(Builder& builder, const std::vector<ValueId>& levels, ValueId cotangent) {
  for (size_t i = levels.size() - 1; i-- > 0;) {
    const int64_t count = builder.module().type(levels[i]).shape[0];
    const int64_t half = count / 2;
    const ValueId top = rows(builder, cotangent, 0, half);
    std::vector<ValueId> parts{multiply(builder, top, rows(builder, levels[i], half, 2 * half)),
                               multiply(builder, top, rows(builder, levels[i], 0, half))};
    if (count % 2 != 0) parts.push_back(rows(builder, cotangent, half, half + 1));
    cotangent = build_concatenate(builder, parts, 0);
  }
  return cotangent;
}

}  // namespace

ValueId product_cotangent(Builder& builder, ValueId leaves, ValueId cotangent) {
  return backwards(builder, product_tree(builder, leaves, builder.module().type(leaves).shape[0]), cotangent);
}

void vjp_product(VjpContext& context, DimSpan dims) {
  Builder& builder = context.builder();
  const TensorType type = context.op().operand_type(0);
  const Dims kept_shape = context.op().result_type().shape;
  const Dims kept = other_dims(type.ndim(), dims);
  Dims permutation = to_dims(dims);
  permutation.insert(permutation.end(), kept.begin(), kept.end());
  Dims front_shape;
  int64_t count = 1;
  for (int64_t dim : permutation) front_shape.push_back(type.shape[static_cast<size_t>(dim)]);
  for (int64_t dim : dims) count *= type.shape[static_cast<size_t>(dim)];

  const ValueId cotangent = context.cotangent();
  if (count == 0) {  // the result is the init value
    if (context.needs(0)) context.set(0, build_zeros(builder, type));
    const Dims all = identity_dims(static_cast<int64_t>(kept_shape.size()));
    if (context.needs(1)) context.set(1, build_reduce(builder, cotangent, {}, Reducer::kSum, all));
    return;
  }
  const Dims row_shape = with_leading(1, kept_shape);
  const ValueId front = build_transpose(builder, context.operand(0), permutation);
  const ValueId leaves = build_reshape(builder, front, with_leading(count, kept_shape));
  const std::vector<ValueId> levels = product_tree(builder, leaves, count);
  const ValueId row = build_reshape(builder, cotangent, row_shape);
  if (context.needs(0)) {
    const ValueId init = build_broadcast(builder, context.operand(1), row_shape, {});
    const ValueId all = backwards(builder, levels, multiply(builder, row, init));
    context.set(0,
                build_transpose(builder, build_reshape(builder, all, front_shape), inverse_permutation(permutation)));
  }
  if (context.needs(1)) {
    const ValueId part = multiply(builder, row, levels.back());
    const Dims all = identity_dims(static_cast<int64_t>(row_shape.size()));
    context.set(1, build_reduce(builder, part, {}, Reducer::kSum, all));
  }
}

}  // namespace shardwise
