// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce_product_vjp.h"

#include <vector>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/product_tree.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

void vjp_product(VjpContext& context, DimSpan dims) {
  Builder& builder = context.builder();
  const TensorType type = context.op().operand_type(0);
  const Dims kept_shape = context.op().result_type().shape;
  const Dims kept = other_dims(type.ndim(), dims);
  // The reduced dims come first, so that a reshape makes them one leading dim.
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
    // The init value is one more factor of each element's gradient.
    const ValueId init = build_broadcast(builder, context.operand(1), row_shape, {});
    const ValueId all = product_tree_cotangent(builder, levels, builder.create("stablehlo.multiply", {row, init}));
    context.set(0,
                build_transpose(builder, build_reshape(builder, all, front_shape), inverse_permutation(permutation)));
  }
  if (context.needs(1)) {
    const ValueId part = builder.create("stablehlo.multiply", {row, levels.back()});
    const Dims all = identity_dims(static_cast<int64_t>(row_shape.size()));
    context.set(1, build_reduce(builder, part, {}, Reducer::kSum, all));
  }
}

}  // namespace shardwise
