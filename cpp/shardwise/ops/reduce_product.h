// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a product: for each element the product of all others, which is also correct if some are 0.
//
// The reduced dims become one leading dim of size n, which is multiplied pairwise until one element is left. On the way
// back, each half gets the cotangent times the other half. That takes about 4 log2(n) ops and no division:
//
//   x = [a, b, c]  →  [a·b, c]  →  [a·b·c]          cotangents:  [g]  →  [g·c, g·a·b]  →  [g·c·b, g·c·a, g·a·b]
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

// For stablehlo.reduce with the reducer prod over `dims`.
void vjp_product(VjpContext& context, DimSpan dims);
// The cotangent of `leaves` for the product over their leading dim. `cotangent` has one row.
ValueId product_cotangent(Builder& builder, ValueId leaves, ValueId cotangent);

}  // namespace shardwise
