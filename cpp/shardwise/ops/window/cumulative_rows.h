// SPDX-License-Identifier: Apache-2.0
//
// Rows of cumulative ops along sharded dims, and regions that combine them.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// The slice [start, limit) of one dim, also where that is all of it.
ValueId rows_between(Builder& builder, ValueId value, size_t dim, int64_t start, int64_t limit);
// `row` has one row where `shape` has several.
ValueId repeated_row(Builder& builder, ValueId row, const Dims& shape);
// Which of `shards` totals belong to the shards before the one at `own`, or after it.
ValueId build_other_shards(Builder& builder, ValueId own, int64_t shards, bool before);

// The known init values of a reduce_window by a region of its own, if they change no element that they are combined
// with: a row of scalars, by input. Empty otherwise.
//
//   logaddexp, -inf      max(-inf, x) + log1p(exp(-inf)) is x
std::vector<Scalar> neutral_inits(const OpView& op);
// For such an op: each sharded dim has the prefix form or passes through.
void partition_region_by_gathered_totals(PartitionContext& context);
void partition_region_by_totals(PartitionContext& context);

}  // namespace shardwise
