// SPDX-License-Identifier: Apache-2.0
//
// reduce by (value, index) pairs, and by any other region. Both combine one dim after another, the last dim first, each
// from its first row to its last. So elements are combined in order, whatever the region:
//
//   5 rows by a region      0·1  2·3  4      0·1·2·3  4      0·1·2·3·4      init·0·1·2·3·4
//
// Each step runs the region's tile program on slabs of rows.
#pragma once

#include "shardwise/ir/op_def.h"

namespace shardwise {

bool has_argument_kernel(DType index);  // whether the loops for pairs know this dtype of indices
std::optional<Kernel> prepare_reduce_arguments(const OpView& op, const KernelTypes& types, Reducer reducer);
std::optional<Kernel> prepare_reduce_region(const OpView& op, const KernelTypes& types);

}  // namespace shardwise
