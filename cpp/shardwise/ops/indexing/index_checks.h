// SPDX-License-Identifier: Apache-2.0
//
// The constraints that gather and scatter share, for their infer functions.
//
//   expect_indexing(op, indexing, "offset_dims", …)    ShapeError: which list must hold what, with the types
#pragma once

#include "shardwise/ops/indexing/indexing.h"

namespace shardwise {

// Checks everything about the operand and the indices. Does not read `indexing.out` and `indexing.slice`.
void expect_indexing(const InferContext& op, const Indexing& indexing, const IndexingNames& names);
// The sizes of the dims of out that are not slice dims: those of the indices, without the index vector dim.
Dims batch_sizes(const Indexing& indexing);

}  // namespace shardwise
