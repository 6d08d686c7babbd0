// SPDX-License-Identifier: Apache-2.0
//
// Creates rows in a fixed new order.
//
//   move_rows(builder, x, 0, {3, 0, 1, 2})      concatenate(x[3:4], x[0:3]), a ring: each row goes to its neighbor
//   move_rows(builder, x, 0, {-1, 0, 1, 2})     pad: row 0 receives nothing, which is zeros
#pragma once

#include "shardwise/ir/builder.h"

namespace shardwise {

// Row i of dim `dim` becomes row sources[i], or zeros where that is -1. By slices where rows, or blocks of rows, come
// from the same distance, or from few different ones: the partitioner turns each into a permutation of shards.
// Otherwise by a gather, for which it gathers the rows.
ValueId move_rows(Builder& builder, ValueId value, int64_t dim, DimSpan sources);

}  // namespace shardwise
