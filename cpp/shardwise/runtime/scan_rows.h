// SPDX-License-Identifier: Apache-2.0
//
// Rows of stacked values, as a scan reads and writes them. A stack is one buffer, in which its rows lie one after another,
// each in the memory order of the first one that is written: shards of rows that are adjacent stay adjacent.
#pragma once

#include "shardwise/ir/type.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

Shards row_of(const Shards& stack, size_t dim, int64_t row);  // views, without the dim
Shards empty_stack_of(const Shards& row, int64_t rows, size_t dim);
void copy_row(const Shards& stack, size_t dim, int64_t row, const Shards& from);
Shards no_rows(const TensorType& local, const AxisList& axes);  // a stack of a scan without trips

}  // namespace shardwise
