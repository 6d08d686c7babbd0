// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/build/product_tree.h"

#include "shardwise/ops/build/slicing.h"

namespace shardwise {
namespace {

ValueId rows(Builder& builder, ValueId value, int64_t begin, int64_t end) {
  return build_slice_along(builder, value, 0, begin, end);
}

ValueId product(Builder& builder, ValueId lhs, ValueId rhs) { return builder.create("stablehlo.multiply", {lhs, rhs}); }

}  // namespace

std::vector<ValueId> product_tree(Builder& builder, ValueId leaves, int64_t count) {
  std::vector<ValueId> levels{leaves};
  for (; count > 1; count = ceil_div(count, 2)) {
    // Row i is paired with row i + half, not with its neighbour: both halves are then contiguous slices.
    const int64_t half = count / 2;
    const ValueId level = levels.back();
    ValueId next = product(builder, rows(builder, level, 0, half), rows(builder, level, half, 2 * half));
    // The row without a partner goes up one level as it is.
    if (count % 2 != 0) next = build_concatenate(builder, {next, rows(builder, level, count - 1, count)}, 0);
    levels.push_back(next);
  }
  return levels;
}

ValueId product_tree_cotangent(Builder& builder, const std::vector<ValueId>& levels, ValueId cotangent) {
  // From the product back to the leaves. Each factor's cotangent is that of the product times the other factor: nothing
  // is divided, so rows of zeros are exact.
  for (size_t i = levels.size() - 1; i-- > 0;) {
    const int64_t count = builder.module().type(levels[i]).shape[0];
    const int64_t half = count / 2;
    const ValueId top = rows(builder, cotangent, 0, half);
    std::vector<ValueId> parts{product(builder, top, rows(builder, levels[i], half, 2 * half)),
                               product(builder, top, rows(builder, levels[i], 0, half))};
    if (count % 2 != 0) parts.push_back(rows(builder, cotangent, half, half + 1));
    cotangent = build_concatenate(builder, parts, 0);
  }
  return cotangent;
}

ValueId product_cotangent(Builder& builder, ValueId leaves, ValueId cotangent) {
  return product_tree_cotangent(builder, product_tree(builder, leaves, builder.module().type(leaves).shape[0]),
                                cotangent);
}

}  // namespace shardwise
