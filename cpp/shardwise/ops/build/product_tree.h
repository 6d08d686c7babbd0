// SPDX-License-Identifier: Apache-2.0
//
// The product over the leading dim as a tree of pairwise products, and its gradient without a division:
//
//   x = [a, b, c]  →  [a·b, c]  →  [a·b·c]          cotangents:  [g]  →  [g·c, g·a·b]  →  [g·c·b, g·c·a, g·a·b]
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// The levels of the tree over the `count` rows of `leaves`, leaves first; the last one has one row.
std::vector<ValueId> product_tree(Builder& builder, ValueId leaves, int64_t count);
// The cotangent of the leaves; `cotangent` has one row.
ValueId product_tree_cotangent(Builder& builder, const std::vector<ValueId>& levels, ValueId cotangent);
// The cotangent of `leaves` for the product over their leading dim; `cotangent` has one row there.
ValueId product_cotangent(Builder& builder, ValueId leaves, ValueId cotangent);

}  // namespace shardwise
