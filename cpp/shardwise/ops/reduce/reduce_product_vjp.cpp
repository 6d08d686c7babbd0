// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a product: for each element the product of all others, which is also correct if some are 0.
//
// The reduced dims become one leading dim of size n, which is multiplied pairwise until one element is left. On the way
// back, each half gets the cotangent times the other half. That takes about 4 log2(n) ops and no division:
//
//   x = [a, b, c]  →  [a·b, c]  →  [a·b·c]          cotangents:  [g]  →  [g·c, g·a·b]  →  [g·c·b, g·c·a, g·a·b]
#include <vector>

#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/product_tree.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {

void vjp_product(VjpContext& context, DimSpan dims) {
  Builder& builder = context.builder();
  const TensorType type = context.op().operand_type(0);
  const Dims kept_shape = context.op().result_type().shape;
  const Dims kept = other_dims(type.ndim(), dims);
  // The reduced dims come first, so that a reshape makes them one leading dim.
  const Dims permutation = joined(dims, kept), front_shape = sizes_at(type.shape, permutation);
  const int64_t count = element_count(sizes_at(type.shape, dims));
  const ValueId cotangent = context.cotangent();
  if (count == 0) {  // the result is the init value
    if (context.needs(0)) context.set(0, build_zeros(builder, type));
    if (context.needs(1)) context.set(1, build_sum_of_all(builder, cotangent));
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
    context.set(1, build_sum_of_all(builder, builder.create("stablehlo.multiply", {row, levels.back()})));
  }
}

}  // namespace shardwise
