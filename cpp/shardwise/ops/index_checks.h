// SPDX-License-Identifier: Apache-2.0
//
// The constraints that gather and scatter share, for their infer functions.
//
//   expect_indexing(op, indexing, "offset_dims", …)    ShapeError: which list must hold what, with the types
#pragma once

#include "shardwise/ops/indexing.h"

namespace shardwise {

// The op's names for the lists of IndexingDims.
struct IndexingNames {
  std::string_view offset, collapsed, operand_batching, indices_batching, index_map;
};
inline constexpr IndexingNames kGatherListNames{"offset_dims", "collapsed_slice_dims", "operand_batching_dims",
                                                "start_indices_batching_dims", "start_index_map"};
inline constexpr IndexingNames kScatterListNames{"update_window_dims", "inserted_window_dims", "input_batching_dims",
                                                 "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"};

// Checks everything about the operand and the indices. Does not read `indexing.out` and `indexing.slice`.
void expect_indexing(const InferContext& op, const Indexing& indexing, const IndexingNames& names);
// The sizes of the dims of out that are not slice dims: those of the indices, without the index vector dim.
Dims batch_sizes(const Indexing& indexing);

}  // namespace shardwise
