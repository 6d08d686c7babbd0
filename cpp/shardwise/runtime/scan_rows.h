// SPDX-License-Identifier: Apache-2.0
//
// Rows of stacked values, as a scan reads and writes them. A stack stores its rows contiguously, in the memory order of
// the first row written, so adjacent shards of rows stay adjacent.
#pragma once

#include "shardwise/ir/type.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

Shards row_of(const Shards& stack, size_t dim, int64_t row);  // views, without the dim
Shards empty_stack_of(const Shards& row, int64_t rows, size_t dim);
void copy_row(const Shards& stack, size_t dim, int64_t row, const Shards& from);
Shards no_rows(const TensorType& local, const AxisList& axes);  // a stack of a scan without trips

}  // namespace shardwise
